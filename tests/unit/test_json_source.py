"""JSON sources: one shape, judged in the order size, depth, syntax, shape (PRJ-4)."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbretrieval import Context, Index
from kbretrieval.chunking import chunks
from kbretrieval.projection import normalized, project
from tests.unit.doubles import code_of, docs

SHAPE, SECTION, SYNTAX, DEEP = "unsupported_json_shape", "unsupported_json_section", "invalid_json", "json_too_deep"
ODD = ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000, "true", "null", "[]", "{}", "0", "-0.0"]

REFUSED: list[tuple[str, str]] = [
    ("", SYNTAX),
    (" ", SYNTAX),
    ("{", SYNTAX),
    ('{"title": "a", "sections": [],}', SYNTAX),
    ("{'title': 'a', 'sections': []}", SYNTAX),
    ('{"title": "a", "sections": []} x', SYNTAX),
    ('{"title": "a\nb", "sections": []}', SYNTAX),
    ('{"title": "a\\q", "sections": []}', SYNTAX),
    ('{"title": "a", "sections": [01]}', SYNTAX),
    ('{"title": "a" /* c */, "sections": []}', SYNTAX),
    ("\ufeff\ufeff{}", SYNTAX),
    ('"a"', SHAPE),
    ("7", SHAPE),
    ("null", SHAPE),
    ("[]", SHAPE),
    ("{}", SHAPE),
    ('{"title": "a"}', SHAPE),
    ('{"title": "a", "sections": [], "extra": ""}', SHAPE),
    ('{"Title": "a", "sections": []}', SHAPE),
    ('{"title": 1, "sections": []}', SHAPE),
    ('{"title": null, "sections": []}', SHAPE),
    ('{"title": "a", "sections": {}}', SHAPE),
    ('{"title": "a", "sections": null}', SHAPE),
    ('{"title": "a", "sections": "x"}', SHAPE),
    ('{"title": "a", "sections": [[]]}', SECTION),
    ('{"title": "a", "sections": ["x"]}', SECTION),
    ('{"title": "a", "sections": [{"heading": "h"}]}', SECTION),
    ('{"title": "a", "sections": [{"heading": "h", "text": "t", "x": "y"}]}', SECTION),
    ('{"title": "a", "sections": [{"heading": "h", "text": null}]}', SECTION),
    ('{"title": "a", "sections": [{"heading": true, "text": "t"}]}', SECTION),
    ("[" * 65, DEEP),
    ("[" * 64 + "]" * 64, SHAPE),
    ("[" * 64, SYNTAX),
    ('{"title": "a", "sections": [1, {"a": 1, "a": 2}]}', SHAPE),
]


@pytest.mark.promise("PRJ-4")
@pytest.mark.parametrize(("source", "code"), REFUSED, ids=[ascii(row[0])[:50] for row in REFUSED])
def test_other_shapes_are_refused_with_their_own_code(source: str, code: str) -> None:
    assert code_of(project, source, "json") == code


@pytest.mark.promise("PRJ-4")
def test_depth_is_judged_before_syntax_and_syntax_before_shape() -> None:
    assert code_of(project, '{"x" ' + "[" * 70, "json") == DEEP
    assert code_of(project, '{"x": 1, "x": NaN', "json") == SYNTAX
    assert code_of(project, '{"title": "' + "\\" * 3 + '"' + "[" * 70, "json") == SYNTAX  # an open string holds them


@pytest.mark.promise("PRJ-4", "PRJ-6")
def test_a_repeated_key_is_refused_at_any_depth(index: Index, alice: Context) -> None:
    """C064: equal values under a repeated key are refused like different ones."""
    section = '{"heading": "节", "text": "文"}'
    bad = [
        f'{{"title": "甲", "title": "乙", "sections": [{section}]}}',
        f'{{"title": "甲", "sections": [{section}], "sections": [{section}]}}',
        '{"title": "甲", "sections": [{"heading": "节", "heading": "假", "text": "文"}]}',
        f'{{"title": "甲", "sections": [{section}, {{"text": "文", "heading": "节", "text": "文"}}]}}',
        f'{{"title": "甲", "title": "甲", "sections": [{section}]}}',
        f'{{"title": "甲", "\\u0074itle": "甲", "sections": [{section}]}}',
    ]
    assert [code_of(index.upsert, "acme", f"j{n}", 1, "json", s, ["alice"]) for n, s in enumerate(bad)] == [SHAPE] * 6
    assert docs(index.search("甲 节 文 假", alice, limit=100)) == [] and index.documents("acme") == ()


@pytest.mark.alone
@pytest.mark.promise("PRJ-4", "PRJ-6", "ERR-2")
def test_deep_nesting_and_numbers_are_refused_quickly(index: Index) -> None:
    """C065: brackets inside strings are no nesting; no number is ever converted."""
    deep = ["[" * 1_000_000, '{"title": ' * 100_000, '{"title": "甲", "sections": ' + "[" * 65 + "]" * 65 + "}"]
    for source in deep:
        times = []
        for _ in range(3):
            begin = time.process_time()
            assert code_of(index.upsert, "acme", "bad", 1, "json", source, ["alice"]) == DEEP
            times.append(time.process_time() - begin)
        assert min(times) < 0.5
    for value in ODD:
        top = f'{{"title": {value}, "sections": []}}'
        inner = f'{{"title": "甲", "sections": [{{"heading": "节", "text": {value}}}]}}'
        assert code_of(index.upsert, "acme", "bad", 1, "json", top, ["alice"]) == SHAPE
        assert code_of(index.upsert, "acme", "bad", 1, "json", inner, ["alice"]) in (SHAPE, SECTION)
    fine = '{"title": "' + "[" * 500 + '", "sections": [{"heading": "{{{", "text": "]]]"}]}'
    assert index.upsert("acme", "ok", 1, "json", fine, ["alice"]).state == "indexed"


STRINGS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
SOURCES = st.fixed_dictionaries(
    {"title": STRINGS, "sections": st.lists(st.fixed_dictionaries({"heading": STRINGS, "text": STRINGS}), max_size=4)}
)


@pytest.mark.promise("PRJ-4", "PRJ-1", "PRJ-2")
@given(SOURCES, st.booleans())
def test_the_projection_of_json(value: dict[str, Any], escaped: bool) -> None:
    made = project(json.dumps(value, ensure_ascii=escaped), "json")
    parts = ["# " + normalized(value["title"])]
    parts += [f"## {normalized(s['heading'])}\n{normalized(s['text'])}" for s in value["sections"]]
    assert made.body == "\n\n".join(parts)
    assert made.title == normalized(value["title"])
    wanted = [(1, made.title)] + [(2, normalized(s["heading"])) for s in value["sections"]]
    assert [(h.level, h.text) for h in made.headings] == wanted
    for heading in made.headings:
        mark = "#" * heading.level + " " + heading.text
        assert made.body[heading.start : heading.start + len(mark)] == mark


@pytest.mark.promise("PRJ-4")
def test_no_sections_is_a_document_with_a_title_alone() -> None:
    made = project('{"sections": [], "title": "年假"}', "json")
    assert (made.title, made.body, len(made.headings)) == ("年假", "# 年假", 1)


@pytest.mark.promise("PRJ-4", "ERR-2")
@given(st.one_of(st.text(max_size=60), st.text(st.sampled_from('{}[]",:\\u0tie1 '), max_size=60)))
def test_arbitrary_text_gives_a_projection_or_a_refusal(text: str) -> None:
    code = code_of(project, text, "json")
    assert code in (None, "invalid_text", SYNTAX, SHAPE, SECTION, DEEP)


@pytest.mark.promise("PRJ-5", "CHK-7")
def test_a_long_heading_is_not_repeated_whole_in_every_chunk() -> None:
    long = "长" * 100_000
    made = project(json.dumps({"title": long, "sections": [{"heading": long, "text": "正文"}]}), "json")
    assert len(made.title) == 1024 and [len(h.text) for h in made.headings] == [1024, 1024]
    assert len(made.body) == 200_000 + len("# \n\n## \n正文")
    assert max(sum(map(len, chunk.heading_path)) for chunk in chunks(made)) <= 2048
