"""The ACL file: read whole or refused whole, with line and column; patterns as in .gitignore (POL-1, POL-4)."""

import re
from pathlib import Path
from typing import Any, cast

import pytest

from kbretrieval import KBError
from kbretrieval.errors import InvalidParameter, InvalidPath, InvalidPolicy
from kbretrieval.sync import Policy, Rule
from kbretrieval.sync.access import gained, halves
from kbretrieval.sync.patterns import PathPattern
from tests.unit.doubles import code_of, error_of

WHOLE = """
version: 1
default: []                       # nobody
rules:                            # the last matching rule decides
  - match: "policies/**"
    allow: ["*"]
  - match: "projects/alpha/**"
    allow: ["group:alpha", "carol"]
"""

# line, column, a part of the facts, the text
FAULTS = [
    (1, 1, "YAML mapping", ""),
    (1, 1, "mapping of version, default, rules", "[]"),
    (1, 1, "version is required", "default: []"),
    (1, 10, "version 1 is required", "version: 2"),
    (1, 10, "version 1 is required", "version: '1'"),
    (1, 10, "version 1 is required", "version: 1.0"),
    (1, 10, "version 1 is required", "version: [1]"),
    (2, 1, "one of version, default, rules", "version: 1\ndeny: []"),
    (2, 1, "one of version, default, rules", "version: 1\n1: []"),
    (2, 1, "one of version, default, rules", "version: 1\n<<: {default: []}"),
    (3, 1, "default may stand once", "version: 1\ndefault: []\ndefault: ['*']"),
    (2, 10, "a list is required", "version: 1\ndefault: alice"),
    (2, 9, "a list is required", "version: 1\ndefault:"),
    (2, 10, "a list is required", "version: 1\ndefault: {alice: 1}"),
    (2, 8, "a list is required", "version: 1\nrules: 7"),
    (2, 18, "a string is required", "version: 1\ndefault: [alice, 7]"),
    (2, 11, "a string is required", "version: 1\ndefault: [yes]"),
    (3, 5, "a string is required", "version: 1\ndefault:\n  - !alice"),
    (2, 11, "a string is required", "version: 1\ndefault: [[alice]]"),
    (2, 12, "one YAML mapping", "version: 1\ndefault: [*]"),
    (2, 11, "200 code points", "version: 1\ndefault: ['']"),
    (2, 11, "white space at an end", "version: 1\ndefault: [' alice']"),
    (2, 18, "U+202E", 'version: 1\ndefault: [alice, "\\u202e"]'),
    (2, 11, "NFC", 'version: 1\ndefault: ["e\\u0301"]'),
    (2, 11, "colon in a group name", "version: 1\ndefault: ['group:a:b']"),
    (3, 5, "mapping of match, allow", "version: 1\nrules:\n  - policies"),
    (3, 5, "allow is required", "version: 1\nrules:\n  - match: a"),
    (4, 5, "match is required", "version: 1\nrules:\n\n  - allow: []"),
    (3, 27, "one of match, allow", "version: 1\nrules:\n  - {match: a, allow: [], deny: []}"),
    (3, 12, "leading !", "version: 1\nrules:\n  - match: '!a'\n    allow: []"),
    (3, 12, "can match a path", "version: 1\nrules:\n  - match: '# a'\n    allow: []"),
    (3, 12, "can match a path", "version: 1\nrules:\n  - match: '/'\n    allow: []"),
    (3, 12, "can match a path", 'version: 1\nrules:\n  - match: "a\\nb"\n    allow: []'),
    (3, 12, "can match a path", "version: 1\nrules:\n  - match: '\\'\n    allow: []"),
    (3, 12, "1024", "version: 1\nrules:\n  - match: ''\n    allow: []"),
    (3, 12, "a string is required", "version: 1\nrules:\n  - match: [a]\n    allow: []"),
    (2, 1, "breaks off", "version: 1\n\tdefault: []"),
    (2, 10, "breaks off", "version: 1\ndefault: \x07"),
    (2, 1, "breaks off", "version: 1\n---\nversion: 1"),
    (1, 1, "breaks off", "[\n" * 600 + "]" * 600),
]


@pytest.mark.promise("POL-1")
@pytest.mark.parametrize(("line", "column", "facts", "text"), FAULTS, ids=[f"{n}" for n in range(len(FAULTS))])
def test_a_fault_is_refused_with_its_place(line: int, column: int, facts: str, text: str) -> None:
    error = error_of(Policy.from_yaml, text)
    assert type(error) is InvalidPolicy
    assert re.fullmatch(rf"invalid_policy: line {line}, column {column}: .*{re.escape(facts)}.*", str(error)), error


@pytest.mark.promise("POL-1")
def test_a_refusal_repeats_nothing_of_the_file_and_hides_nothing_behind_it() -> None:
    for text in ("version: 1\n密码: []", 'version: 1\ndefault: ["密码\\n"]', "version: 1\ndefault: ['密码", "密码: [*"):
        error: BaseException | None = error_of(Policy.from_yaml, text)
        assert isinstance(error, KBError)
        while error is not None:
            assert "密码" not in repr(error)
            error = error.__context__


@pytest.mark.promise("POL-1")
def test_a_policy_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "acl.yml"
    path.write_bytes(b"\xef\xbb\xbf" + WHOLE.encode())
    assert Policy.read(path) == Policy.from_yaml(WHOLE)
    path.write_bytes(b"version: 1\nrules: []\n# \xff")
    assert str(error_of(Policy.read, path)).startswith("invalid_policy: line 3, column 3: UTF-8 is required")
    path.write_bytes(b"#" * 1_000_001)
    assert isinstance(error_of(Policy.read, path), InvalidPolicy)
    assert isinstance(error_of(Policy.read, tmp_path), InvalidPath)


@pytest.mark.promise("POL-1", "POL-4")
def test_the_example_of_the_specification() -> None:
    rules = Policy.from_yaml(WHOLE)
    assert rules.acl_for("policies/hr/leave.md") == ("*",)
    assert rules.acl_for("projects/alpha/plan.md") == ("group:alpha", "carol")
    assert rules.acl_for("projects/beta/plan.md") == ()


@pytest.mark.promise("POL-4")
def test_the_last_matching_rule_decides_and_the_default_is_nobody() -> None:
    rules = Policy.from_yaml("{version: 1, rules: [{match: '*.md', allow: [a, a]}, {match: /x.md, allow: []}]}")
    assert [rules.acl_for(path) for path in ("y.md", "x.md", "deep/x.md", "x.txt")] == [("a",), (), ("a",), ()]
    assert Policy.from_yaml("version: 1\ndefault: [b]").acl_for("x") == ("b",)


# pattern, paths that it names, paths that it does not: what git itself does with them
PATTERNS = [
    ("policies/**", ["policies/a.md", "policies/x/a.md"], ["a/policies/a.md", "policies.md"]),
    ("policies/", ["policies/a.md", "x/policies/a.md"], ["policies"]),
    ("/policies", ["policies/a.md", "policies"], ["x/policies/a.md"]),
    ("*.md", ["a.md", "x/y/a.md"], ["a.mdx", "a.md.txt"]),
    ("x/*.md", ["x/a.md"], ["x/y/a.md", "y/x/a.md"]),
    ("x/**/a.md", ["x/a.md", "x/y/z/a.md"], ["a.md"]),
    ("a?.md", ["ab.md", "制/a年.md"], ["a.md", "abc.md"]),
    ("[ab].md", ["a.md"], ["c.md"]),
    ("制度/**", ["制度/年假.md"], ["旧制度/年假.md"]),
    ("cafe\u0301.md", ["caf\u00e9.md"], ["cafe.md"]),
    ("A.md", ["A.md"], ["a.md"]),
    ("a b.md", ["a b.md"], ["a  b.md"]),
    (r"\#a.md", ["#a.md"], ["a.md"]),
    (r"\!a.md", ["!a.md"], ["a.md"]),
]


@pytest.mark.promise("POL-4")
@pytest.mark.parametrize(("pattern", "named", "others"), PATTERNS, ids=[case[0] for case in PATTERNS])
def test_patterns_are_those_of_gitignore(pattern: str, named: list[str], others: list[str]) -> None:
    made = PathPattern(pattern)
    assert [path for path in [*named, *others] if made.matches(path)] == named


def test_a_pattern_that_is_none_is_refused() -> None:
    for pattern in ("", "!a", "#a", "a\nb", "\\", "x" * 1025, 7):
        assert isinstance(error_of(PathPattern, pattern), InvalidParameter)


# old, new, who gains, first half, second half
CHANGES = [
    ((), (), (), None, None),
    (("a",), ("a",), (), None, None),
    (("a", "b"), ("a",), (), ("a",), None),
    (("a",), ("a", "b"), ("b",), None, ("a", "b")),
    (("a", "b"), ("b", "c"), ("c",), ("b",), ("b", "c")),
    (("a",), ("b",), ("b",), (), ("b",)),
    (("a", "b"), ("b", "a"), (), ("b", "a"), None),
    (("*",), ("a",), (), ("a",), None),
    (("a",), ("*",), ("*",), None, ("*",)),
    (("*", "a"), ("*",), (), ("*",), None),
    (("group:x",), ("x",), ("x",), (), ("x",)),
]


@pytest.mark.promise("POL-3")
@pytest.mark.parametrize(("old", "new", "gains", "first", "last"), CHANGES)
def test_a_change_has_a_half_that_takes_and_a_half_that_gives(
    old: tuple[str, ...], new: tuple[str, ...], gains: object, first: tuple[str, ...] | None, last: object
) -> None:
    assert gained(old, new) == gains
    assert halves(old, new) == (first, last)
    if first is not None:
        assert not gained(old, first) and not gained(new, first)


@pytest.mark.promise("POL-1", "ERR-2")
def test_a_policy_made_by_hand_is_judged_like_one_in_a_file() -> None:
    """`allow="alice"` would be a list of five letters, each a principal."""
    pattern, anything = PathPattern("a.md"), cast(Any, Policy)
    for wrong in ("alice", None, 7, {"alice"}, [7], [""], ["*", "group:"]):
        assert code_of(anything, default=wrong) == "invalid_policy"
        assert code_of(cast(Any, Rule), pattern, wrong) == "invalid_policy"
    assert code_of(cast(Any, Rule), "a.md", ["alice"]) == "invalid_policy"
    assert [code_of(anything, rules) for rules in (None, "a", [("a.md", ())])] == ["invalid_policy"] * 3
    made = anything([Rule(pattern, cast(Any, ["bob", "bob"]))], ["alice"])
    assert made == Policy((Rule(pattern, ("bob",)),), ("alice",))


@pytest.mark.promise("POL-1", "ERR-2")
@pytest.mark.parametrize("given", [None, 7, b"version: 1", ["version: 1"]])
def test_what_is_no_text_and_no_path_is_refused(given: Any) -> None:
    assert code_of(Policy.from_yaml, given) == "invalid_policy"
    if not isinstance(given, bytes):
        assert code_of(Policy.read, given) == "invalid_path"
