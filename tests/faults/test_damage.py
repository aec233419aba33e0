"""FLT-7: single flipped bits and zeroed pages. Fewer answers or a typed refusal, and never a sentence not written."""

import hashlib
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kbretrieval import Context, Index, citation
from kbretrieval.results import Hit
from tests.faults.telling import Told
from tests.unit.doubles import Table, code_of

ALICE = Context("acme", "alice")
TRUTH = {f"b{i:02d}": f"# 条目{i}\n\n报销条目第{i}条，限额{i}00元。" for i in range(12)}
MINE = {doc_id for doc_id in TRUTH if int(doc_id[1:]) % 2}


def prepared(path: Path, dense: bool) -> tuple[bytes, list[Hit]]:
    with Index.open(path, encoder=Table("table-2") if dense else None) as index:
        for doc_id, text in TRUTH.items():
            index.upsert("acme", doc_id, 1, "markdown", text, ["alice"] if doc_id in MINE else ["bob"])
        hits = list(index.search("报销条目", ALICE, limit=12))
        assert {item.doc_id for item in index.answer(hits, ALICE, limit=10).evidence} == MINE
    return path.read_bytes(), hits


def wrong_quotes(index: Index, hits: list[Hit]) -> int:
    found = index.answer(hits, ALICE, limit=10).evidence
    return sum(item.doc_id not in MINE or item.quote != TRUTH[item.doc_id] for item in found)


def survived(path: Path, hits: list[Hit], dense: bool) -> tuple[int, int]:
    """Wrong quotations and typed refusals while everything is tried; any other exception passes through."""
    wrong, codes = [0], list[str | None]()

    def kept(index: Index) -> None:
        wrong[0] += wrong_quotes(index, hits)

    def searched(index: Index) -> None:
        wrong[0] += wrong_quotes(index, list(index.search("报销条目", ALICE, limit=12)))

    def searched_in_fts5(index: Index) -> None:
        wrong[0] += wrong_quotes(index, list(index.search("报销条目", ALICE, limit=12, lexical="fts5")))

    calls: list[Callable[[Index], object]] = [
        *(kept, searched, searched_in_fts5, lambda index: index.audit(hits, ALICE), Index.check),
        *(lambda index: index.status("acme", "b01"), lambda index: index.documents("acme")),
        lambda index: index.upsert("acme", "b02", 2, "markdown", "# 新\n\n新的正文", ["bob"]),
        lambda index: index.set_acl("acme", "b04", ["carol"], 1),
        lambda index: index.delete("acme", "b06", 2),
        *(Index.purge, kept, searched),
    ]

    def use() -> None:
        with Index.open(path, encoder=Table("table-2") if dense else None, wait_seconds=0) as index:
            index._engine.connection.run("PRAGMA synchronous=OFF")
            codes.extend(code_of(call, index) for call in calls)

    codes.append(code_of(use))
    return wrong[0], sum(code is not None for code in codes)


def flipped(whole: bytes, number: int) -> Iterator[bytes]:
    chance = random.Random(7)
    for _ in range(number):
        at, bit = chance.randrange(len(whole)), chance.randrange(8)
        yield whole[:at] + bytes([whole[at] ^ (1 << bit)]) + whole[at + 1 :]


def zeroed(whole: bytes) -> Iterator[bytes]:
    for at in range(0, len(whole), 4096):
        yield whole[:at] + bytes(4096) + whole[at + 4096 :]


@pytest.mark.slow
@pytest.mark.promise("FLT-7", "CON-2", "ERR-2", "CIT-1")
@pytest.mark.parametrize("dense", [False, True])
def test_a_flipped_bit_never_becomes_a_quotation(
    tmp_path: Path, full: bool, dense: bool, record_property: Told
) -> None:
    """C061"""
    path = tmp_path / "kb.sqlite"
    whole, hits = prepared(path, dense)
    refusals, flips = 0, 1000 if full else 150
    record_property("flipped bits", flips)
    for data in flipped(whole, flips):
        for item in tmp_path.iterdir():
            item.unlink()
        path.write_bytes(data)
        wrong, refused = survived(path, hits, dense)
        assert wrong == 0
        refusals += refused
    assert refusals > 0


@pytest.mark.slow
@pytest.mark.promise("FLT-7", "CON-2", "ERR-2", "CIT-1")
@pytest.mark.parametrize("dense", [False, True])
def test_a_zeroed_page_never_becomes_a_quotation(tmp_path: Path, dense: bool) -> None:
    path = tmp_path / "kb.sqlite"
    whole, hits = prepared(path, dense)
    outcomes = []
    for data in zeroed(whole):
        for item in tmp_path.iterdir():
            item.unlink()
        path.write_bytes(data)
        outcomes.append(survived(path, hits, dense))
    assert sum(wrong for wrong, _ in outcomes) == 0
    assert sum(refused > 0 for _, refused in outcomes) >= len(outcomes) // 3


@pytest.mark.promise("FLT-7")
def test_a_build_that_believes_the_stored_digest_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the digests recomputed from the text, a flipped bit in body and chunk alike would be quoted."""
    path = tmp_path / "kb.sqlite"
    whole, hits = prepared(path, dense=False)
    old, new = "限额100元".encode(), "限额900元".encode()
    path.write_bytes(whole.replace(old, new))
    assert survived(path, hits, dense=False)[0] == 0
    path.write_bytes(whole.replace(old, new))
    monkeypatch.setattr(citation, "_agrees", lambda document, chunk: True)
    monkeypatch.setattr(citation, "digest", remembered_digest)
    assert survived(path, hits, dense=False)[0] > 0


def remembered_digest(text: str) -> str:
    """The digest of what was once written, whatever is written now."""
    return hashlib.sha256(text.replace("限额900元", "限额100元").encode("utf-8")).hexdigest()
