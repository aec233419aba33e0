"""Identity strings, revisions, contexts (ID-1, ID-2, ID-3, ID-6)."""

import unicodedata
from dataclasses import FrozenInstanceError
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbretrieval import Context, Index, Provenance
from kbretrieval.identity import checked_acl, checked_document, checked_name, granted_by
from tests.unit.doubles import code_of, docs

VALID = [
    "a",
    "年假",
    "制度/年假.md",
    "a@b.example",
    "C:\\x",
    "..",
    "a b",
    "!alice",
    "group",
    "a:b",
    "𠮷",
    "Ünï",
    "a" * 200,
]
INVALID = ["", " a", "a ", "a\tb", "a\nb", "a\u00a0b", "a\u3000b", "a\u2028b", "*", "a\u200bb", "\ufeffa", "a\u202eb"]
INVALID += ["a\u00adb", "e\u0301", "\ud800", "a\0", "a\x7f", "a\x85", "a" * 201, "\U000e0041", "\u212b"]


@pytest.mark.promise("ID-2")
@pytest.mark.parametrize("name", VALID)
def test_paths_addresses_and_chinese_names_are_valid_everywhere(name: str) -> None:
    assert checked_name(name, "tenant") == name
    assert Context(name, name).principal == name
    assert checked_acl([name]) == (name,)
    assert checked_document(name, name) == (name, name)


@pytest.mark.promise("ID-2", "ACL-2")
@pytest.mark.parametrize("name", INVALID, ids=ascii)
def test_other_strings_are_refused_everywhere(name: str) -> None:
    assert code_of(Context, name, "alice") == "invalid_identity"
    assert code_of(Context, "acme", name) == "invalid_identity"
    assert code_of(Context, "acme", "alice", (name,)) == "invalid_identity"
    assert code_of(checked_document, name, "d") == "invalid_identity"
    if len(name) < 201:
        assert code_of(checked_document, "acme", name) == "invalid_identity"
    if name != "*":
        assert code_of(checked_acl, [name]) == "explicit_acl_list_required"
    assert code_of(checked_acl, ["group:" + name]) == "explicit_acl_list_required"


@pytest.mark.promise("ID-2")
def test_a_document_name_may_be_longer() -> None:
    assert checked_document("acme", "字" * 1024) == ("acme", "字" * 1024)
    assert code_of(checked_document, "acme", "字" * 1025) == "invalid_identity"


@pytest.mark.promise("ID-2")
@given(st.text(max_size=12))
def test_a_name_is_accepted_by_the_rule_alone(name: str) -> None:
    categories = [unicodedata.category(c) for c in name]
    plain = not any(c in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in categories)
    spaces = all(c == " " for c, kind in zip(name, categories, strict=True) if kind == "Zs")
    ends = name == name.strip(" ") and name not in ("", "*")
    allowed = plain and spaces and ends and unicodedata.normalize("NFC", name) == name
    assert (code_of(checked_name, name, "tenant") is None) == allowed


@pytest.mark.promise("ID-2")
@pytest.mark.parametrize("value", [None, 1, b"a", ["a"], ("a",), True, 1.0])
def test_only_strings_are_names(value: object) -> None:
    assert code_of(Context, value, "alice") == "invalid_identity"
    assert code_of(Context, "acme", value) == "invalid_identity"
    assert code_of(Context, "acme", "alice", (value,)) == "invalid_identity"
    assert code_of(checked_acl, [value]) == "explicit_acl_list_required"


@pytest.mark.promise("ID-3")
@pytest.mark.parametrize("value", [0, -1, True, False, 1.0, "1", None, 2**63, 10**30, float("nan"), [], b"1"])
def test_revisions_are_integers_from_one(index: Index, value: object) -> None:
    assert code_of(index.upsert, "acme", "d", value, "text", "甲", ["alice"]) == "positive_revision_required"
    assert code_of(index.delete, "acme", "d", value) == "positive_revision_required"
    assert code_of(index.set_acl, "acme", "d", [], value) == "positive_acl_revision_required"
    assert index.documents("acme") == ()


@pytest.mark.promise("ID-3")
def test_the_largest_revision_is_a_revision(index: Index) -> None:
    assert index.upsert("acme", "d", 2**63 - 1, "text", "甲", ["alice"]).revision == 2**63 - 1
    assert index.status("acme", "d").revision == 2**63 - 1


@pytest.mark.promise("ID-3")
@pytest.mark.parametrize("value", [0, 1, None, "True", []])
def test_restore_is_a_boolean(index: Index, value: object) -> None:
    code = code_of(index.upsert, "acme", "d", 1, "text", "甲", ["alice"], value)
    assert code == "explicit_restore_boolean_required"


@pytest.mark.promise("ID-1")
def test_one_name_in_two_tenants_is_two_documents(index: Index) -> None:
    index.upsert("acme", "d", 1, "text", "退款甲", ["alice"])
    index.upsert("beta", "d", 7, "text", "退款乙", ["alice"])
    one = index.search("退款", Context("acme", "alice"))
    two = index.search("退款", Context("beta", "alice"))
    assert [hit.text for hit in one] == ["退款甲"] and [hit.text for hit in two] == ["退款乙"]
    index.delete("acme", "d", 2)
    assert index.status("beta", "d").state == "live"
    assert docs(index.search("退款", Context("beta", "alice"))) == ["d"]
    assert docs(index.search("退款", Context("acme", "alice"))) == []


def test_a_context_is_frozen_and_keeps_its_groups_sorted_and_once() -> None:
    made = Context("acme", "alice", ["b", "a", "b"])  # type: ignore[arg-type]
    assert made.groups == ("a", "b") and made == Context("acme", "alice", ("b", "a"))
    with pytest.raises(FrozenInstanceError):
        made.tenant = "beta"  # type: ignore[misc]
    assert len(Context("acme", "alice", tuple(map(str, range(1000)))).groups) == 1000


@pytest.mark.promise("CIT-6")
def test_the_entry_that_lets_a_context_read_is_its_own_name_first() -> None:
    context = Context("acme", "carol", ("hr", "it"))
    assert granted_by(["*", "group:it", "carol"], context) == "carol"
    assert granted_by(["*", "group:it", "group:hr"], context) == "group:it"
    assert granted_by(["*", "bob"], context) == "*"
    assert granted_by(["bob", "group:ops"], context) is None
    assert granted_by([], context) is None


@pytest.mark.promise("ACL-2")
def test_an_acl_is_exactly_a_list_and_knows_no_negation(index: Index) -> None:
    for value in (None, "alice", ("alice",), {"alice"}, {}, iter(["alice"]), type("L", (list,), {})(["alice"])):
        assert code_of(checked_acl, value) == "explicit_acl_list_required"
    index.upsert("acme", "d", 1, "text", "退款", ["!alice", "*"])
    assert docs(index.search("退款", Context("acme", "alice"))) == ["d"]
    index.upsert("acme", "nobody", 1, "text", "退款", [])
    assert docs(index.search("退款", Context("acme", "alice"))) == ["d"]


@pytest.mark.promise("ID-6")
def test_provenance_is_bounded_strings() -> None:
    assert Provenance("u", "c", "t", "v").to_dict() == {
        "uri": "u",
        "connector": "c",
        "collected_at": "t",
        "version": "v",
    }
    for value in (7, b"u", "a" * 2049, "a\0", "\ud800"):
        assert code_of(Provenance, value) == "invalid_provenance"


@pytest.mark.promise("PRJ-1", "ID-2", "ACL-2", "ERR-2")
def test_lone_surrogates_and_nul_are_refused_before_any_write(index: Index) -> None:
    """C068."""
    calls = {
        "source": (index.upsert, "acme", "s", 1, "markdown", "a\ud83d", ["alice"]),
        "nul": (index.upsert, "acme", "s", 1, "markdown", "甲\0乙", ["alice"]),
        "json": (index.upsert, "acme", "s", 1, "json", '{"title": "\ud83d", "sections": []}', ["alice"]),
        "escaped": (index.upsert, "acme", "s", 1, "json", '{"title": "\\ud83d", "sections": []}', ["alice"]),
        "front": (index.upsert, "acme", "s", 1, "markdown", '---\ntitle: "\\ud83d"\n---\n', ["alice"]),
        "tenant": (index.upsert, "ac\ud800me", "s", 1, "markdown", "甲", ["alice"]),
        "doc": (index.delete, "acme", "s\udfff", 1),
        "acl": (index.upsert, "acme", "s", 1, "markdown", "甲", ["al\ud800"]),
        "query": (index.search, "保留\ud83d", Context("acme", "alice")),
    }
    codes = {name: code_of(*call) for name, call in calls.items()}
    assert codes == {
        **dict.fromkeys(("source", "nul", "json", "escaped", "front"), "invalid_text"),
        **dict.fromkeys(("tenant", "doc"), "invalid_identity"),
        "acl": "explicit_acl_list_required",
        "query": "bounded_query_required",
    }
    assert index.documents("acme") == ()
    kept = index.upsert("acme", "s", 1, "markdown", "# 甲\n\n响铃\a 与 \x1b 保留", ["alice"])
    assert kept.state == "indexed" and kept.controls == 2


class Role(StrEnum):
    """A tenant and a name, as an application may keep them."""

    ACME = "acme"
    ALICE = "alice"


class Odd(str):
    """A string whose length and letters are not what they seem."""

    def __len__(self) -> int:
        raise RuntimeError("not counted")


@pytest.mark.promise("ID-2", "CIT-8", "ACL-2")
def test_a_member_of_an_enumeration_is_a_name_like_any_other(index: Index) -> None:
    """Its hits would be malformed, and every answer an abstention, if it was kept as it is."""
    made = index.upsert(Role.ACME, Role.ALICE, 1, "text", "退款两周", [Role.ALICE])
    context = Context(Role.ACME, Role.ALICE, (Role.ALICE,))
    names = (context.tenant, context.principal, *context.groups, made.tenant, made.doc_id)
    assert [type(name) for name in names] == [str] * 5
    answer = index.answer(index.search("退款", context), context)
    assert [(item.quote, item.granted_by) for item in answer.evidence] == [("退款两周", "alice")]
    assert context == Context("acme", "alice", ("alice",))


@pytest.mark.promise("ID-2", "ERR-2")
def test_what_a_kind_of_string_does_is_not_asked(index: Index) -> None:
    assert Context(Odd("acme"), Odd("alice")).entries() == ("alice", "*")
    assert code_of(Context, "acme", Odd("")) == "invalid_identity"
    assert code_of(index.upsert, "acme", "d", 1, "text", "x", [Odd("")]) == "explicit_acl_list_required"
