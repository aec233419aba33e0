"""From a source to its projection: normal form, coordinates, bounds (PRJ-1, PRJ-2, PRJ-5, PRJ-6, ID-4)."""

import hashlib
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbretrieval import Context, Index
from kbretrieval.projection import MAX_CODE_POINTS, MAX_HEADINGS, MAX_SOURCE_BYTES, normalized, project
from tests.unit.doubles import code_of, docs, quotes

FORMATS = ("markdown", "text")
CHARACTERS = st.one_of(
    st.sampled_from("\r\n\t #甲e\u0301\u00e9\ufeff\u0085\u2028\x07"), st.characters(exclude_categories=["Cs"])
)
ANY_TEXT = st.tuples(st.sampled_from(["", "\ufeff", "\ufeff\ufeff"]), st.text(CHARACTERS)).map("".join)
SMALL = 0.5


@pytest.mark.promise("PRJ-1")
@given(ANY_TEXT, st.sampled_from(FORMATS))
def test_a_projection_is_nfc_with_lf_and_no_mark_at_its_head(source: str, source_format: str) -> None:
    if "\0" in source:
        assert code_of(project, source, source_format) == "invalid_text"
        return
    made = project(source, source_format)
    plain = source[1:] if source.startswith("\ufeff") else source
    assert made.body == unicodedata.normalize("NFC", plain.replace("\r\n", "\n").replace("\r", "\n"))
    assert "\r" not in made.body
    assert made.sha256 == hashlib.sha256(made.body.encode()).hexdigest()
    assert made.source_sha256 == hashlib.sha256(source.encode()).hexdigest()
    assert made.controls == sum(1 for c in made.body if c < " " and c not in "\t\n")
    assert project(made.body, source_format).body == normalized(made.body.removeprefix("\ufeff"))


@pytest.mark.promise("PRJ-1", "PRJ-3", "ID-4")
def test_a_mark_and_three_line_ends_are_one_version(index: Index, alice: Context) -> None:
    """C067: only CRLF and CR become LF; U+0085 and U+2028 stay."""
    text = "# 标题\n正文\n\n末行\u0085内\u2028外"
    first = index.upsert("acme", "bom", 1, "markdown", "\ufeff" + text, ["alice"])
    same = [text, "\ufeff" + text.replace("\n", "\r\n"), text.replace("\n", "\r")]
    assert first.state == "indexed"
    assert [index.upsert("acme", "bom", 1, "markdown", s, ["alice"]).state for s in same] == ["unchanged"] * 3
    other = text.replace("\u0085", "\n")
    assert code_of(index.upsert, "acme", "bom", 1, "markdown", other, ["alice"]) == "stale_or_conflicting_revision"
    assert code_of(index.upsert, "acme", "b", 1, "markdown", text.encode(), ["alice"]) == "text_required"
    assert index.status("acme", "bom").title == "标题"
    answer = index.answer(index.search("标题", alice), alice)
    assert quotes(answer) == [text]
    assert (answer.evidence[0].line_start, answer.evidence[0].line_end) == (1, 4)


@pytest.mark.promise("PRJ-1")
@pytest.mark.parametrize("value", [None, b"a", 7, ["a"], bytearray(b"a"), {"a": 1}])
def test_a_source_is_a_string(value: object) -> None:
    assert [code_of(project, value, f) for f in ("markdown", "text", "json")] == ["text_required"] * 3


@pytest.mark.promise("PRJ-1", "LEX-2")
def test_composed_and_decomposed_forms_meet(index: Index, alice: Context) -> None:
    """C004: the stored text is NFC, the query may be either."""
    index.upsert("acme", "dessert", 1, "markdown", "# 甜品\n\ncre\u0300me bru\u0302le\u0301e 按餐费报销。", ["alice"])
    index.upsert("acme", "tea", 1, "markdown", "# 茶点\n\n普通茶点不报销。", ["alice"])
    for query in ("cr\u00e8me", "cre\u0300me", "br\u00fbl\u00e9e", "bru\u0302le\u0301e"):
        assert docs(index.search(query, alice, mode="lexical")) == ["dessert"]
    found = quotes(index.answer(index.search("cre\u0300me", alice), alice))
    assert found == ["# 甜品\n\ncr\u00e8me br\u00fbl\u00e9e 按餐费报销。"] and len(found[0]) == 25


@pytest.mark.promise("PRJ-2")
@settings(max_examples=20)
@given(st.text(st.sampled_from("甲乙😀e\u0301\n #𠮷a\u200d"), min_size=1, max_size=300))
def test_a_quotation_is_the_slice_of_the_projection(tmp_path_factory: pytest.TempPathFactory, source: str) -> None:
    alice = Context("acme", "alice")
    with Index.open(tmp_path_factory.mktemp("slice") / "kb", chunk_size=16, overlap=4) as index:
        index.upsert("acme", "d", 1, "text", source, ["alice"])
        body = project(source, "text").body
        for hit in index.search("甲 乙 a e\u0301 𠮷", alice, limit=100):
            assert hit.text == body[hit.start : hit.end]
            evidence = index.answer([hit], alice).evidence[0]
            assert evidence.quote == body[evidence.start : evidence.end]
            assert evidence.line_start == body[: hit.start].count("\n") + 1
            assert "\n".join(body.split("\n")[evidence.line_start - 1 : evidence.line_end]).count(
                evidence.quote.strip("\n")
            )


@pytest.mark.promise("PRJ-5")
@pytest.mark.parametrize("value", ["html", "", "Markdown", None, 7, b"text", ["text"], "md"])
def test_another_format_is_refused(value: object) -> None:
    assert code_of(project, "a", value) == "unsupported_format"


@pytest.mark.alone
@pytest.mark.promise("PRJ-5")
def test_bounds_refuse_before_any_work() -> None:
    """C070, second half."""
    huge = [
        ("甲" * (MAX_CODE_POINTS + 1), "markdown"),
        ("𠮷" * (MAX_SOURCE_BYTES // 4 + 1), "json"),
        ("[" * (MAX_CODE_POINTS + 1), "json"),
        ("> " * (MAX_CODE_POINTS // 2 + 1), "markdown"),
    ]
    for source, source_format in huge:
        waited = []
        for _ in range(3):
            begin = time.process_time()
            assert code_of(project, source, source_format) == "source_too_large"
            waited.append(time.process_time() - begin)
        assert min(waited) < SMALL
    assert project("a" * MAX_CODE_POINTS, "text").body == "a" * MAX_CODE_POINTS
    assert "4,000,000 code points and 12,000,000 UTF-8 bytes" in (Index.upsert.__doc__ or "")


@pytest.mark.slow
@pytest.mark.promise("PRJ-5")
def test_headings_are_bounded() -> None:
    sections = ",".join(['{"heading":"","text":""}'] * MAX_HEADINGS)
    assert code_of(project, f'{{"title":"","sections":[{sections}]}}', "json") == "source_too_large"
    fewer = ",".join(['{"heading":"","text":""}'] * (MAX_HEADINGS - 1))
    assert len(project(f'{{"title":"","sections":[{fewer}]}}', "json").headings) == MAX_HEADINGS


@pytest.mark.slow
@pytest.mark.promise("PRJ-5")
def test_a_text_that_grows_past_the_bound_in_normal_form_is_refused() -> None:
    growing = "\u0958"  # NFC makes two code points of it
    assert len(normalized(growing)) == 2
    assert code_of(project, growing * (MAX_CODE_POINTS // 2 + 1), "text") == "source_too_large"


@pytest.mark.promise("PRJ-6")
@pytest.mark.parametrize(
    ("source_format", "source"),
    [("json", "{"), ("html", "新"), ("markdown", "新\0"), ("text", b"\xff"), ("json", "[" * 99)],
)
def test_a_failed_parse_leaves_the_old_version_searchable(
    index: Index, alice: Context, source_format: str, source: str
) -> None:
    index.upsert("acme", "d", 1, "markdown", "# 退款\n\n两周内到账。", ["alice"])
    before = index.search("退款", alice)
    assert code_of(index.upsert, "acme", "d", 2, source_format, source, ["alice"]) is not None
    after = index.search("退款", alice)
    assert after == before and index.status("acme", "d").revision == 1
    assert quotes(index.answer(before, alice)) == ["# 退款\n\n两周内到账。"]
    assert index.upsert("acme", "d", 2, "text", "新", ["alice"]).state == "indexed"


@pytest.mark.promise("ID-4", "ID-6")
def test_two_sources_with_one_projection_are_one_version_unless_the_title_differs(index: Index) -> None:
    body = '{"title": "甲", "sections": []}'
    index.upsert("acme", "d", 1, "json", body, ["alice"])
    kept = index.status("acme", "d")
    assert index.upsert("acme", "d", 1, "json", body.replace(" ", "\n"), ["alice"]).state == "unchanged"
    assert index.upsert("acme", "d", 1, "markdown", "# 甲", ["alice"]).state == "unchanged"
    assert index.status("acme", "d") == kept
    assert kept.source_sha256 == hashlib.sha256(body.encode()).hexdigest() != kept.sha256
    # As plain text the same projection has another title.
    assert code_of(index.upsert, "acme", "d", 1, "text", "# 甲", ["alice"]) == "stale_or_conflicting_revision"


def test_the_title_of_plain_text_is_its_first_line_with_text() -> None:
    assert project("\n  \n  年假  \n五天", "text").title == "年假"
    assert project("", "text").title == project(" \n", "text").title == "Untitled"
    assert len(project("长" * 5000, "text").title) == 1024
    assert project("# 甲", "text").headings == ()
