"""The real model in an index: stored bytes, truncation, reuse, and what works when the model is not there."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kbretrieval import Context, Index
from kbretrieval.encoders.bge import FLOOR, IDENTIFIER, INSTRUCTION, BGEEncoder, StoredBGE
from kbretrieval.encoders.port import Encoding
from kbretrieval.evidence.environment import environment
from kbretrieval.model.files import FOLDER_VARIABLE
from tests.unit.doubles import Table, code_of, docs, error_of, quotes, rank, score, sql

SHORT = "# 住宿\n\n出差住宿每晚限额为500元。\n\n"
LONG = SHORT + "餐费每日上限为八十元，须附发票原件与明细清单。\n\n交通费凭票据实报销，不含私人行程，超出部分自理。"


class Counting:
    """Counts what an encoder is asked to encode."""

    def __init__(self, encoder: BGEEncoder | Table) -> None:
        self.encoder = encoder
        self.identifier, self.dimension, self.floor = encoder.identifier, encoder.dimension, encoder.floor
        self.documents: list[str] = []

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        """Encode, and remember the documents."""
        if not query:
            self.documents += texts
        return self.encoder.encode(texts, query=query)


# C024
@pytest.mark.model
@pytest.mark.promise("VEC-3", "VEC-6", "VEC-7")
@pytest.mark.parametrize("order", [("short", "long"), ("long", "short")])
def test_equal_texts_have_equal_bytes_and_scores(
    bge: BGEEncoder, index_path: Path, alice: Context, order: tuple[str, str]
) -> None:
    texts = {"short": SHORT, "long": LONG}
    for name in order:
        # A file of its own for each document, so that a reused vector cannot make them equal.
        with Index.open(index_path.with_name(f"{name}.sqlite"), bge, 24, 0) as index:
            index.upsert("acme", name, 1, "markdown", texts[name], ["alice"])
    stored = [
        sql(index_path.with_name(f"{name}.sqlite"), "SELECT vector FROM vectors ORDER BY chunk_key")[0][0]
        for name in order
    ]
    assert stored[0] == stored[1]
    assert len(stored[0]) == 2048
    with Index.open(index_path, bge, 24, 0) as index:
        for name in order:
            index.upsert("acme", name, 1, "markdown", texts[name], ["alice"])
        found = index.search("住一晚能报多少", alice, limit=100, mode="vector")
    first = {hit.doc_id: hit for hit in found if hit.start == 0}
    assert first["short"].text == first["long"].text == SHORT
    assert score(first["short"], "vector") == score(first["long"], "vector")


# C028
@pytest.mark.model
@pytest.mark.promise("VEC-2")
def test_a_document_with_the_instruction_is_the_query_itself(bge: BGEEncoder, index_path: Path, alice: Context) -> None:
    with Index.open(index_path, bge) as index:
        index.upsert("acme", "plain", 1, "markdown", "住宿标准", ["alice"])
        index.upsert("acme", "prefixed", 1, "markdown", INSTRUCTION + "住宿标准", ["alice"])
        result = index.search("住宿标准", alice, mode="vector")
    hits = {hit.doc_id: hit for hit in result}
    prefixed, plain = score(hits["prefixed"], "vector"), score(hits["plain"], "vector")
    assert prefixed is not None
    assert plain is not None
    assert prefixed > 0.99999
    assert plain < prefixed
    assert rank(hits["prefixed"], "vector") == 1
    exported = json.dumps(result.to_dict(), ensure_ascii=False)
    assert "probability" not in exported
    assert "confidence" not in exported


@pytest.mark.model
@pytest.mark.promise("VEC-2")
def test_what_is_below_the_floor_is_no_candidate_and_is_counted(
    bge: BGEEncoder, index_path: Path, alice: Context
) -> None:
    with Index.open(index_path, bge) as index:
        index.upsert("acme", "travel", 1, "text", "出差住宿每晚限额为500元。", ["alice"])
        index.upsert("acme", "noise", 1, "text", "zxqv 0x7f lorem", ["alice"])
        result = index.search("旅馆住一夜能花多少钱", alice, mode="vector")
    assert docs(result) == ["travel"]
    trace = next(channel for channel in result.channels if channel.channel == "vector")
    assert (trace.scored, trace.below_floor) == (2, 1)
    assert FLOOR == 0.40


# C074
@pytest.mark.model
@pytest.mark.promise("VEC-4")
def test_truncation_is_counted_in_the_result_also_when_the_vector_is_reused(
    bge: BGEEncoder, index_path: Path, alice: Context
) -> None:
    source = "甲" * 600 + "乙方代号猎户座。"
    counting = Counting(bge)
    with Index.open(index_path, counting, 700, 0) as index:
        made = index.upsert("acme", "long", 1, "markdown", source, ["alice"])
        assert (made.chunks, made.truncated_chunks) == (1, 1)
        assert docs(index.search("猎户座", alice, mode="lexical")) == ["long"]
        assert index.upsert("acme", "short", 1, "markdown", "乙" * 300, ["alice"]).truncated_chunks == 0
        assert index.upsert("acme", "copy", 1, "markdown", source, ["alice"]).truncated_chunks == 1
        assert index.upsert("acme", "long", 1, "markdown", source, ["alice"]).truncated_chunks == 1
    assert counting.documents.count(source) == 1


def _encodings(counting: Counting, index_path: Path) -> list[int]:
    """Return how many texts were encoded after each step of one text's life."""
    seen = []
    with Index.open(index_path, counting) as index:
        index.upsert("acme", "a", 1, "text", "住宿标准", ["alice"])
        seen.append(len(counting.documents))
        index.upsert("acme", "b", 1, "text", "住宿标准", ["bob"])
        index.upsert("beta", "c", 1, "text", "住宿标准", ["*"])
        index.upsert("acme", "a", 2, "text", "住宿标准", ["alice"])
        seen.append(len(counting.documents))
        index.delete("acme", "a", 3)
        index.upsert("acme", "d", 1, "text", "住宿标准", ["alice"])
        seen.append(len(counting.documents))
        for tenant, name in (("acme", "b"), ("beta", "c"), ("acme", "d")):
            index.delete(tenant, name, 9)
        index.upsert("acme", "e", 1, "text", "住宿标准", ["alice"])
        seen.append(len(counting.documents))
    return seen


@pytest.mark.promise("PRF-10", "DEL-2")
def test_a_text_is_encoded_once_while_a_live_chunk_has_it(index_path: Path) -> None:
    assert _encodings(Counting(Table("counted/1")), index_path) == [1, 1, 1, 2]


@pytest.mark.promise("PRF-10")
def test_a_text_that_stands_twice_in_one_document_is_encoded_once(index_path: Path) -> None:
    counting = Counting(Table("counted/1"))
    with Index.open(index_path, counting, 8, 0) as index:
        assert index.upsert("acme", "a", 1, "text", "一二三四五六七八" * 3, ["alice"]).chunks == 3
    assert counting.documents == ["一二三四五六七八"]


@pytest.fixture
def filled(bge: BGEEncoder, index_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """An index made with the model and opened again where there is none."""
    with Index.open(index_path, bge) as index:
        index.upsert("acme", "travel", 1, "text", "出差住宿每晚限额为500元。", ["alice"])
        index.upsert("acme", "leave", 1, "text", "员工有5天带薪年假。", ["alice"])
    empty = tmp_path / "no model here"
    empty.mkdir()
    monkeypatch.setenv(FOLDER_VARIABLE, str(empty))
    with Index.open(index_path) as reopened:
        yield reopened


@pytest.mark.model
@pytest.mark.promise("MOD-4")
def test_without_the_model_reading_policy_and_deletion_work(filled: Index, alice: Context) -> None:
    assert isinstance(filled.encoder, StoredBGE)
    assert filled.contract.encoder == IDENTIFIER
    hits = filled.search("住宿限额", alice, mode="lexical")
    assert docs(hits) == ["travel"]
    assert quotes(filled.answer(hits, alice)) == ["出差住宿每晚限额为500元。"]
    assert not filled.check()
    assert filled.set_acl("acme", "leave", ["bob"], 1).acl_revision == 2
    assert filled.delete("acme", "travel", 2).state == "deleted"
    assert filled.answer(hits, alice).state == "abstain"


@pytest.mark.model
@pytest.mark.promise("MOD-4", "VEC-4")
def test_without_the_model_what_needs_it_says_so_and_writes_nothing(filled: Index, alice: Context) -> None:
    for mode in ("vector", "hybrid"):
        refusal = error_of(filled.search, "住宿限额", alice, mode=mode)
        assert refusal is not None
        assert refusal.code == "model_missing"
        assert "run: kbretrieval model fetch" in str(refusal)
        assert "住宿" not in str(refusal)
    before = filled.documents("acme")
    assert code_of(filled.upsert, "acme", "new", 1, "text", "新的文本", ["alice"]) == "model_missing"
    assert filled.documents("acme") == before
    # A text whose vector is stored needs no model.
    assert filled.upsert("acme", "copy", 1, "text", "员工有5天带薪年假。", ["alice"]).state == "indexed"


@pytest.mark.promise("MOD-4", "CON-1")
def test_an_encoder_of_the_readers_own_is_unavailable_not_missing(index_path: Path, alice: Context) -> None:
    with Index.open(index_path, Table("mine/1")) as index:
        index.upsert("acme", "travel", 1, "text", "住宿限额", ["alice"])
    with Index.open(index_path) as index:
        hits = index.search("住宿限额", alice, mode="lexical")
        assert quotes(index.answer(hits, alice)) == ["住宿限额"]
        refusal = error_of(index.search, "住宿限额", alice, mode="vector")
        assert refusal is not None
        assert refusal.code == "encoder_unavailable"
        assert "mine/1 stored" in str(refusal)
        assert code_of(index.upsert, "acme", "new", 1, "text", "别的", ["alice"]) == "encoder_unavailable"
        assert index.delete("acme", "travel", 2).state == "deleted"


# C076
@pytest.mark.model
@pytest.mark.promise("VEC-9")
def test_on_one_machine_two_runs_are_equal_to_the_byte(bge: BGEEncoder, tmp_path: Path, alice: Context) -> None:
    runs = []
    for name in ("one", "two"):
        with Index.open(tmp_path / f"{name}.sqlite", bge) as index:
            index.upsert("acme", "travel", 1, "markdown", "# 差旅\n\n出差住宿每晚限额为500元。", ["alice"])
            index.upsert("acme", "leave", 1, "markdown", "# 年假\n\n员工有5天带薪年假。", ["alice"])
            index.upsert("acme", "remote", 1, "markdown", "# 远程\n\n每周最多居家办公2天。", ["alice"])
            result = index.search("旅馆住一夜能花多少钱", alice, mode="vector")
            runs.append(json.dumps(result.to_dict(), ensure_ascii=False))
            assert docs(result)[0] == "travel"
    assert runs[0] == runs[1]


# C076
@pytest.mark.promise("VEC-9", "EVD-1")
def test_the_environment_names_processor_and_runtime() -> None:
    said = environment(("onnxruntime", "numpy", "tokenizers"))
    processor, packages = said["cpu"], said["packages"]
    assert isinstance(processor, dict)
    assert isinstance(packages, dict)
    assert processor["model"]
    assert isinstance(processor["flags"], list)
    assert set(packages) == {"onnxruntime", "numpy", "tokenizers"}
