"""Text to terms, for teaching: it shows what an analyzer decides, and is no Chinese word segmenter.

Useful for exact identifiers (`E042` stays whole) and for literal matches in Chinese. Not useful for synonyms:
钱被扣了两次 and 重复扣款 share no term, which is what the dense channel is there for (OFF-38).
"""

import re
import unicodedata
from collections.abc import Callable

Analyzer = Callable[[str], tuple[str, ...]]

# Script=Han as fixed ranges: the standard library has no script property, and a fixed table gives the same terms under
# every interpreter's Unicode version.
HAN_RANGES = (
    *((0x2E80, 0x2E99), (0x2E9B, 0x2EF3), (0x2F00, 0x2FD5), (0x3005, 0x3005), (0x3007, 0x3007), (0x3021, 0x3029)),
    *((0x3038, 0x303B), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFA6D), (0xFA70, 0xFAD9), (0x16FE2, 0x16FE3)),
    *((0x16FF0, 0x16FF1), (0x20000, 0x2A6DF), (0x2A700, 0x2B739), (0x2B740, 0x2B81D), (0x2B820, 0x2CEA1)),
    *((0x2CEB0, 0x2EBE0), (0x2EBF0, 0x2EE5D), (0x2F800, 0x2FA1D), (0x30000, 0x3134A), (0x31350, 0x323AF)),
)
_HAN = "".join(f"{chr(first)}-{chr(last)}" for first, last in HAN_RANGES)
_RUN = re.compile(f"[a-z0-9]+|[{_HAN}]+")


def fold(text: str) -> str:
    """Return `text` after NFKC, casefold, NFKC (OFF-33).

    The second NFKC is needed because casefold can leave its result decomposed, as it does with U+01F0.

    Example:
        >>> fold("ＲＥＳＥＴ")
        'reset'
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def runs(folded: str) -> tuple[str, ...]:
    """Return the runs of `[a-z0-9]` and of Han in folded text, in order; everything else separates.

    Example:
        >>> runs("e042 上传报错!")
        ('e042', '上传报错')
    """
    return tuple(_RUN.findall(folded))


def pieces(run: str) -> tuple[str, ...]:
    """Return the terms of one run: an ASCII run whole (OFF-34), Han as overlapping bigrams (OFF-35).

    A run of one Han character is its own term.

    Example:
        >>> pieces("e042"), pieces("上传报错"), pieces("税")
        (('e042',), ('上传', '传报', '报错'), ('税',))
    """
    if run[0].isascii() or len(run) == 1:
        return (run,)
    return tuple(run[start : start + 2] for start in range(len(run) - 1))


def terms(text: str) -> tuple[str, ...]:
    """Return the terms of a text in order, repeats kept (OFF-33, OFF-34, OFF-35).

    Not promised: words. Kana, hangul, accented Latin and other scripts give no term in this experiment.

    Example:
        >>> terms("E042 怎么处理")
        ('e042', '怎么', '么处', '处理')
    """
    return tuple(piece for run in runs(fold(text)) for piece in pieces(run))


def shared_terms(left: str, right: str, analyzer: Analyzer = terms) -> tuple[str, ...]:
    """Return the distinct terms that two texts have in common, in ascending order (OFF-38).

    Example:
        >>> shared_terms("钱被扣了两次", "重复扣款")
        ()
    """
    return tuple(sorted(set(analyzer(left)) & set(analyzer(right))))
