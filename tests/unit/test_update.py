"""An update replaces everything at once, in every channel, and old vouchers die with the old text."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Context, Index
from tests.unit.doubles import MODES, Table, code_of, docs, quotes, sql


@pytest.mark.promise("UPD-2", "UPD-4", "LEX-7", "VEC-6")
def test_after_an_edit_text_and_vector_are_of_the_same_version(index_path: Path, alice: Context) -> None:
    """C030: the row never has the new text and the old vector."""
    old, new = "# 退款\n\n三十天内可退", "# 退款\n\n十四天内可退"
    table = Table("table-2", {old: [1.0, 0.0], new: [0.0, 1.0], "月内": [1.0, 0.0], "两周": [0.0, 1.0]})
    with Index.open(index_path, encoder=table) as index:
        index.upsert("acme", "refund", 1, "markdown", old, ["alice"])
        assert docs(index.search("月内", alice, mode="vector")) == ["refund"]
        kept = index.search("三十", alice)
        index.upsert("acme", "refund", 2, "markdown", new, ["alice"])
        assert {q: docs(index.search(q, alice, mode="vector")) for q in ("月内", "两周")} == {
            "月内": [],
            "两周": ["refund"],
        }
        assert [docs(index.search(q, alice, mode="lexical")) for q in ("三十", "十四")] == [[], ["refund"]]
        assert index.answer(kept, alice).state == "abstain"
        assert quotes(index.answer(index.search("十四", alice), alice)) == [new]
        assert index.check() == ()


@pytest.mark.promise("LEX-7", "UPD-2")
def test_what_was_written_is_found_right_after_its_commit_and_not_before(index: Index, alice: Context) -> None:
    """C030: no optimise, refresh or reopening between write and search; not from inside the transaction either."""
    for number in range(25):
        word = f"word{number}"
        index.upsert("acme", f"n{number}", 1, "markdown", f"# 公告\n\n编号 {word} 生效", ["alice"])
        for lexical in ("isolated", "fts5"):
            found = [docs(index.search(word, alice, limit=1, mode=m, lexical=lexical)) for m in MODES]  # type: ignore[arg-type]
            assert found == [[f"n{number}"]] * 3


@pytest.mark.promise("UPD-2", "UPD-4")
def test_a_shorter_version_leaves_no_tail(index_path: Path, alice: Context) -> None:
    """C031"""
    v1 = "\n\n".join(f"第{i}节 流程说明文字。" for i in range(10)) + " 尾词鹧鸪"
    v2 = "\n\n".join(f"第{i}节 流程说明文字。" for i in range(3))
    with Index.open(index_path, chunk_size=20, overlap=0) as index:
        one = index.upsert("acme", "guide", 1, "markdown", v1, ["alice"])
        (tail,) = index.search("鹧鸪", alice, mode="lexical")
        two = index.upsert("acme", "guide", 2, "markdown", v2, ["alice"])
        assert (one.chunks, two.chunks, tail.end) == (10, 3, len(v1))
        for mode in MODES:
            for lexical in ("isolated", "fts5"):
                assert docs(index.search("鹧鸪", alice, mode=mode, lexical=lexical)) == []  # type: ignore[arg-type]
        rest = index.search("流程说明", alice, limit=100)
        assert index.answer([tail], alice).state == "abstain"
        assert (len(rest), {hit.revision for hit in rest}, max(hit.end for hit in rest)) == (3, {2}, len(v2))
        for table in ("chunks", "postings", "chunks_fts"):
            assert sql(index_path, f"SELECT count(*) FROM {table}") == [(3,)]


@pytest.mark.promise("ID-4", "ID-5", "ID-6", "UPD-3", "PRJ-4")
def test_one_revision_names_one_content(index: Index, alice: Context, bob: Context) -> None:
    """C032: a repeat is a repeat, whatever its line ends; another text or title under the same number is refused."""
    text = "# 规定\n\n上限五百元"
    index.upsert("acme", "rule", 5, "markdown", text, ["alice"])
    repeat = index.upsert("acme", "rule", 5, "markdown", "\ufeff" + text.replace("\n", "\r\n"), ["alice", "bob"])
    assert (repeat.state, repeat.chunks) == ("unchanged", 1)
    for revision in (5, 4, 1):
        refused = code_of(index.upsert, "acme", "rule", revision, "markdown", text.replace("五", "九"), ["alice"])
        assert refused == "stale_or_conflicting_revision"
    assert quotes(index.answer(index.search("上限", alice), alice)) == [text]
    assert docs(index.search("上限", bob)) == []

    def deck(title: str, *sections: tuple[str, str]) -> str:
        parts = [{"heading": heading, "text": body} for heading, body in sections]
        return json.dumps({"title": title, "sections": parts}, ensure_ascii=False)

    one, two = deck("甲\n\n## 乙\n丙", ("丁", "戊")), deck("甲", ("乙", "丙"), ("丁", "戊"))
    first = index.upsert("acme", "t", 1, "json", one, ["alice"])
    assert code_of(index.upsert, "acme", "t", 1, "json", two, ["alice"]) == "stale_or_conflicting_revision"
    second = index.upsert("acme", "t", 2, "json", two, ["alice"])
    assert (second.state, second.sha256) == ("indexed", first.sha256)
    assert index.status("acme", "t").title == "甲"


@pytest.mark.promise("ID-3", "ERR-2")
def test_the_edges_of_a_revision(index: Index, alice: Context) -> None:
    """C033"""
    index.upsert("acme", "ok", 2**63 - 2, "markdown", "# 甲\n\n内容", ["alice"])
    bad: list[Any] = [0, -1, True, 1.0, "1", None, 2**63, 2**70]
    for revision in bad:
        assert code_of(index.upsert, "acme", "v", revision, "markdown", "# 乙", ["alice"]) == (
            "positive_revision_required"
        )
        assert code_of(index.delete, "acme", "v", revision) == "positive_revision_required"
    top = index.upsert("acme", "ok", 2**63 - 1, "markdown", "# 甲\n\n新内容", ["alice"])
    assert (top.state, top.revision, docs(index.search("新内容", alice))) == ("indexed", 2**63 - 1, ["ok"])
    assert code_of(index.delete, "acme", "ok", 2**63 - 1) == "delete_requires_new_revision"


@pytest.mark.promise("UPD-1", "ID-5")
def test_a_slow_encoder_does_not_overwrite_what_came_meanwhile(index_path: Path, alice: Context) -> None:
    """C034, FLT-13: the stored revision is read again inside the transaction; no lock is held while encoding."""
    slow = Table("table-2")
    with Index.open(index_path, encoder=slow) as index:
        index.upsert("acme", "p", 1, "markdown", "# 价目\n\n一版", ["alice"])
        with Index.open(index_path, encoder=Table("table-2"), wait_seconds=0) as second:
            slow.before = lambda: second.upsert("acme", "p", 3, "markdown", "# 价目\n\n三版", ["alice"])
            late = code_of(index.upsert, "acme", "p", 2, "markdown", "# 价目\n\n二版", ["alice"])
            assert late == "stale_or_conflicting_revision"
            assert quotes(index.answer(index.search("价目", alice), alice)) == ["# 价目\n\n三版"]
            slow.before = lambda: second.delete("acme", "p", 9)
            late = code_of(index.upsert, "acme", "p", 8, "markdown", "# 价目\n\n八版", ["alice"])
            assert late == "stale_or_conflicting_revision"
            slow.before = lambda: second.upsert("acme", "q", 1, "markdown", "# 同\n\n同文", ["bob"])
            same = index.upsert("acme", "q", 1, "markdown", "# 同\n\n同文", ["alice"])
            assert (same.state, index.status("acme", "q").acl) == ("unchanged", ("bob",))


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.promise("UPD-2", "VEC-8", "CIT-1")
def test_a_reader_sees_one_version_whole(index_path: Path, alice: Context) -> None:
    """C058: during a thousand replacements no search and no answer shows chunks of two versions."""
    body = "\n\n".join(f"第{n}节 版本{{v}}说明文字。" for n in range(8))
    with Index.open(index_path, chunk_size=20, overlap=0) as index, Index.open(index_path) as reader:
        index._engine.connection.run("PRAGMA synchronous=OFF")
        index.upsert("acme", "d", 1, "text", body.format(v=1), ["alice"])
        stop = threading.Event()

        def write() -> None:
            for revision in range(2, 60):
                index.upsert("acme", "d", revision, "text", body.format(v=revision), ["alice"])
            stop.set()

        writer = threading.Thread(target=write)
        writer.start()
        seen = set()
        while not stop.is_set():
            hits = reader.search("说明文字", alice, limit=100)
            assert len({(hit.revision, hit.document_sha256) for hit in hits}) == 1
            assert {f"版本{hit.revision}" in hit.text for hit in hits} == {True}
            answer = reader.answer(hits, alice, limit=10)
            assert len({item.revision for item in answer.evidence}) <= 1
            seen.add(hits[0].revision)
        writer.join()
        assert len(seen) > 3
