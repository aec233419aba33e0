"""The table of contents: every chapter's number, file, title and question, and which are published (NB-10).

The set of `notebooks/NN_*.ipynb` has to equal the published part of `CHAPTERS`; a test compares them, so that a
notebook can be neither forgotten nor skipped.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kbretrieval.book.errors import UnknownChapter


@dataclass(frozen=True, slots=True)
class Chapter:
    """One chapter: `number` 0 to 18, the notebook's file name, and its title and question in Chinese."""

    number: int
    file: str
    title: str
    question: str
    needs_model: bool = False
    published: bool = False

    @property
    def label(self) -> str:
        """Return how a sentence names the chapter, for example 第 07 章《RRF》."""
        return f"第 {self.number:02d} 章《{self.title}》"


CHAPTERS: tuple[Chapter, ...] = (
    Chapter(0, "00_guide.ipynb", "导读与环境", "这台机器能做这些实验吗？", needs_model=True, published=True),
    Chapter(1, "01_contract.ipynb", "检索契约", "“答对了五百元”为什么还不够？", published=True),
    Chapter(2, "02_identity.ipynb", "身份、版本与来源", "同名文档、乱序事件怎么办？", published=True),
    Chapter(3, "03_projection.ipynb", "可定位的投影", "引用指向哪一份文本？", published=True),
    Chapter(4, "04_chunking.ipynb", "切分与证据粒度", "窗口和重叠改变了什么？", published=True),
    Chapter(5, "05_lexical.ipynb", "FTS5 词面基线", "词面召回做了什么，漏了什么？", published=True),
    Chapter(6, "06_vectors.ipynb", "词项向量与 BGE", "向量就是语义吗？", needs_model=True, published=True),
    Chapter(7, "07_rrf.ipynb", "RRF", "为什么按名次而不是分数融合？", needs_model=True, published=True),
    Chapter(8, "08_rerank.ipynb", "重排", "是召回错了还是排序错了？", published=True),
    Chapter(9, "09_citation.ipynb", "引用复核", "一条命中什么时候失效？", published=True),
    Chapter(10, "10_update.ipynb", "增量更新", "读者会看到半新半旧吗？", published=True),
    Chapter(11, "11_delete.ipynb", "删除与墓碑", "旧事件会让文档复活吗？", published=True),
    Chapter(12, "12_access.ipynb", "撤权与缓存", "昨天能看，今天还能输出吗？", published=True),
    Chapter(13, "13_lifecycle.ipynb", "核心实验", "一次跑完，哪里可能失败？", published=True),
    Chapter(14, "14_bge.ipynb", "BGE 实验", "真实模型补回了什么？", needs_model=True, published=True),
    Chapter(15, "15_evaluation.ipynb", "评估", "满分说明了什么，没说明什么？", published=True),
    Chapter(16, "16_maintenance.ipynb", "走向可维护", "换模型、换库时什么不能变？", published=True),
    Chapter(17, "17_offline.ipynb", "离线混合检索", "不装模型也能解释融合吗？", published=True),
    Chapter(18, "18_replay.ipynb", "冻结与回放", "一次任务到底用了什么材料？", published=True),
)


def chapter(number: int) -> Chapter:
    """Return the chapter with this number; raises `UnknownChapter`.

    Example:
        >>> chapter(7).label
        '第 07 章《RRF》'
    """
    if not 0 <= number < len(CHAPTERS):
        raise UnknownChapter(f"目录里只有第 0 到第 {len(CHAPTERS) - 1} 章，给出的是 {number}。")
    return CHAPTERS[number]


def find_notebooks(folder: Path) -> list[Path]:
    """Return the notebooks `NN_*.ipynb` of a folder in chapter order."""
    return sorted(folder.glob("[0-9][0-9]_*.ipynb"))


def contents_differences(paths: Iterable[Path], chapters: Iterable[Chapter] = CHAPTERS) -> list[str]:
    """Return one line per notebook that only the folder or only the published contents have; empty when they agree.

    Example:
        >>> contents_differences([Path("07_rrf.ipynb")], [Chapter(7, "07_rrf.ipynb", "RRF", "?", published=True)])
        []
    """
    found = {path.name for path in paths}
    listed = {item.file for item in chapters if item.published}
    absent = [f"{name}: in the table of contents, not in the folder" for name in sorted(listed - found)]
    return absent + [f"{name}: in the folder, not in the table of contents" for name in sorted(found - listed)]
