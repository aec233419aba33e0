"""OBS-5: `explain` answers four questions about one document and one principal, from what is stored."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Context, Index, Provenance
from kbretrieval.explaining import Explanation
from kbretrieval.explaining.explanation import Difference
from kbretrieval.migration import migrate
from kbretrieval.projection import digest, project
from kbretrieval.sync import FolderSource, Policy, synchronise
from tests.unit.doubles import code_of, error_of, logical_dump, sql

SOURCE = "# 差旅\n\n住宿每晚限额五百元。\n\n## 交通\n\n" + "高铁二等座。" * 80
PLACE = Provenance(uri="file:///制度/差旅.md", connector="folder", version="7")
CAROL = Context("acme", "carol", ("hr", "finance"))


@pytest.fixture
def kb(index: Index) -> Index:
    """An index with one document of several chunks, which carol may read in two ways."""
    index.upsert("acme", "travel", 3, "markdown", SOURCE, ["alice", "group:hr", "*"], provenance=PLACE)
    return index


def rules(found: Explanation) -> dict[str, tuple[str, str, bool | None]]:
    return {rule.field: (rule.required, rule.verdict, rule.holds) for rule in found.rules}


@pytest.mark.promise("OBS-5")
def test_which_projection_version(kb: Index) -> None:
    found, made = kb.explain("travel", CAROL), project(SOURCE, "markdown")
    assert (found.tenant, found.doc_id, found.state, found.contract) == ("acme", "travel", "live", kb.contract)
    version, status = found.version, kb.status("acme", "travel")
    assert version is not None
    assert (version.projection, version.format, version.revision) == (kb.contract.projection, "markdown", 3)
    assert (version.document_sha256, version.source_sha256) == (made.sha256, digest(SOURCE))
    assert (version.code_points, version.intact) == (len(made.body), True)
    assert version.content_commit == status.content_commit == 1


@pytest.mark.promise("OBS-5", "CIT-6")
def test_why_a_principal_may_read_it_and_since_when(kb: Index, alice: Context, bob: Context) -> None:
    access = kb.explain("travel", CAROL).access
    assert (access.principal, access.groups) == ("carol", ("finance", "hr"))
    assert (access.may_read, access.reason, access.granted_by) == (True, "granted", "group:hr")
    assert (access.admitting, access.acl) == (("group:hr", "*"), ("alice", "group:hr", "*"))
    assert (access.acl_revision, access.acl_commit) == (1, 1)
    kb.set_acl("acme", "travel", ["alice"], 1)
    refused, granted = kb.explain("travel", bob).access, kb.explain("travel", alice).access
    assert (refused.may_read, refused.reason, refused.granted_by) == (False, "no entry admits", None)
    assert (refused.admitting, refused.acl, refused.acl_revision, refused.acl_commit) == ((), ("alice",), 2, 2)
    assert granted.granted_by == "alice" == kb.answer(kb.search("限额", alice), alice).evidence[0].granted_by


@pytest.mark.promise("OBS-5")
def test_how_a_quotation_is_found_again(kb: Index, alice: Context) -> None:
    source = kb.explain("travel", alice).source
    made = project(SOURCE, "markdown")
    assert source is not None and len(source.chunks) > 1
    assert (source.source_sha256, source.document_sha256, source.provenance) == (digest(SOURCE), made.sha256, PLACE)
    assert [chunk.number for chunk in source.chunks] == list(range(len(source.chunks)))
    # Windows of 220 end with the end of a line of 20, whose line feed still belongs to it.
    kb.upsert("acme", "lines", 1, "text", ("高铁二等座。" + "一" * 13 + "\n") * 20, ["alice"])
    lines = kb.explain("lines", alice).source
    assert lines is not None
    places = {chunk.chunk_key: chunk for chunk in (*source.chunks, *lines.chunks)}
    quoted = kb.answer(kb.search("高铁", alice, limit=10), alice, 10).evidence
    assert {evidence.doc_id for evidence in quoted} == {"travel", "lines"}
    for evidence in quoted:
        place = places[evidence.chunk_key]
        assert (place.start, place.end, place.sha256) == (evidence.start, evidence.end, evidence.sha256)
        assert (place.line_start, place.line_end) == (evidence.line_start, evidence.line_end)
        assert digest(evidence.quote) == place.sha256 and place.agrees


@pytest.mark.promise("OBS-5", "CIT-5")
def test_what_a_citation_must_carry_now(kb: Index, bob: Context) -> None:
    kb.set_acl("acme", "travel", ["alice"], 1)
    found = kb.explain("travel", bob)
    assert found.version is not None and found.source is not None and found.hits == ()
    assert rules(found) == {
        "tenant": ("acme", "other tenant", None),
        "principal": ("bob", "other principal", None),
        "document": ("live", "deleted", True),
        "access": ("an entry that admits", "access withdrawn", False),
        "acl_revision": ("2", "ACL changed", None),
        "revision": ("3", "revision changed", None),
        "document_sha256": (found.version.document_sha256, "revision changed", None),
        "chunk_key, start, end": (f"of one of {len(found.source.chunks)} chunks", "chunk missing", None),
        "chunk_sha256": ("of that chunk", "text altered", None),
        "store": ("texts, slices and digests agree", "store corrupted", True),
    }


@pytest.mark.promise("OBS-5", "CIT-5")
def test_why_old_hits_fail_now_fact_by_fact(kb: Index, alice: Context) -> None:
    kb.upsert("acme", "other", 1, "text", "住宿限额另有规定。", ["alice"])
    hits = {hit.doc_id: hit for hit in kb.search("住宿限额", alice)}
    old = hits["travel"]
    kb.upsert("acme", "travel", 4, "markdown", SOURCE + "完。", [])
    kb.set_acl("acme", "travel", ["alice"], 1)
    new = next(hit for hit in kb.search("住宿限额", alice) if hit.doc_id == "travel")
    given: list[Any] = [old, new.to_dict(), hits["other"], dataclasses.replace(old, principal="bob"), {"a": 1}]
    given += [dataclasses.replace(new, end=new.end + 1, chunk_sha256="0" * 64)]
    found = kb.explain("travel", alice, given)
    assert [item.judged for item in found.hits] == list(kb.audit(given, alice))
    verdicts = ["ACL changed", "valid", "valid", "other principal", "malformed", "chunk missing"]
    assert [item.judged.verdict for item in found.hits] == verdicts
    assert [item.of_this_document for item in found.hits] == [True, True, False, True, False, True]
    facts = (
        Difference("acl_revision", 1, 2),
        Difference("revision", 3, 4),
        Difference("document_sha256", old.document_sha256, new.document_sha256),
        Difference("chunk_key", old.chunk_key, None),
    )
    altered = (Difference("end", new.end + 1, new.end), Difference("chunk_sha256", "0" * 64, new.chunk_sha256))
    assert [item.differences for item in found.hits] == [facts, (), (), facts, (), altered]


@pytest.mark.promise("OBS-5", "MIG-2")
def test_after_a_migration_it_tells_the_new_contract_and_what_old_hits_lack(
    kb: Index, index_path: Path, alice: Context
) -> None:
    old = kb.search("限额", alice)[0]
    migrate(index_path, chunk_size=100, overlap=20)
    found = kb.explain("travel", alice, [old])
    assert (found.contract.chunk_size, found.contract.overlap) == (100, 20)
    assert found.source is not None and len(found.source.chunks) > 3
    assert found.version is not None and found.version.revision == 3
    (told,) = found.hits
    assert told.judged.verdict == "chunk missing"
    assert told.differences == (Difference("chunk_key", old.chunk_key, None),)


@pytest.mark.promise("OBS-5", "ACL-8")
def test_a_deleted_document_and_one_that_never_was(kb: Index, alice: Context) -> None:
    old = kb.search("限额", alice)[0]
    kb.delete("acme", "travel", 4)
    gone, never = kb.explain("travel", alice, [old]), kb.explain("nowhere", alice, [old])
    assert (gone.state, gone.source, gone.access.reason, gone.access.acl) == ("deleted", None, "deleted", ())
    assert gone.version is not None
    assert (gone.version.revision, gone.version.intact, gone.version.code_points) == (4, None, 0)
    assert gone.version.document_sha256 == old.document_sha256
    assert (gone.access.acl_revision, gone.access.may_read) == (2, False)
    assert list(rules(gone)) == ["tenant", "principal", "document"] == list(rules(never))
    assert rules(gone)["document"] == ("live", "deleted", False) == rules(never)["document"]
    assert [item.judged.verdict for item in (*gone.hits, *never.hits)] == ["deleted", "deleted"]
    assert (gone.hits[0].of_this_document, never.hits[0].of_this_document) == (True, False)
    assert (never.state, never.doc_id, never.version, never.source) == ("absent", "nowhere", None, None)
    assert (never.access.reason, never.access.acl_revision) == ("absent", None)
    assert kb.explain("travel", Context("elsewhere", "alice")).state == "absent"


@pytest.mark.promise("OBS-5")
@pytest.mark.parametrize(
    ("statement", "intact", "agrees"),
    [
        ("UPDATE documents SET body = body || 'x'", False, [True] * 3),
        ("UPDATE documents SET body = 'x' || substr(body, 2)", False, [False, True, True]),
        ("UPDATE chunks SET text = text || 'x' WHERE number = 1", True, [True, False, True]),
        ("UPDATE chunks SET sha256 = '0' WHERE number = 2", True, [True, True, False]),
    ],
)
def test_damage_is_named_where_it_is(
    kb: Index, index_path: Path, alice: Context, statement: str, intact: bool, agrees: list[bool]
) -> None:
    sql(index_path, statement)
    found = kb.explain("travel", alice)
    assert found.version is not None and found.source is not None
    assert (found.version.intact, [chunk.agrees for chunk in found.source.chunks]) == (intact, agrees)
    assert rules(found)["store"][2] is False


@pytest.mark.promise("OBS-5")
def test_it_holds_no_text_and_writes_nothing(kb: Index, index_path: Path, alice: Context) -> None:
    hits = list(kb.search("住宿限额", alice))
    before = logical_dump(index_path)
    held = json.dumps(kb.explain("travel", alice, hits).to_dict(), ensure_ascii=False)
    assert not [word for word in ("住宿", "限额", "高铁", "交通", "每晚") if word in held]
    assert json.loads(held)["schema"] == "kbretrieval.explanation/1"
    assert logical_dump(index_path) == before


@pytest.mark.promise("OBS-5")
def test_a_path_means_the_document_of_that_file(tmp_path: Path, index: Index, alice: Context) -> None:
    root = tmp_path / "docs"
    (root / "制度").mkdir(parents=True)
    (root / "制度" / "年假.md").write_text("# 年假\n\n五天。", encoding="utf-8", newline="\n")
    (root / "named.md").write_text("---\nid: 差旅制度\n---\n\n# 差旅", encoding="utf-8", newline="\n")
    (tmp_path / "acl.yml").write_text("version: 1\ndefault: ['*']\nrules: []\n", encoding="utf-8", newline="\n")
    synchronise(index, FolderSource(root), Policy.read(tmp_path / "acl.yml"), tenant="acme")
    for given, doc_id in (
        ("制度/年假.md", "制度/年假.md"),
        (str(root / "制度" / "年假.md"), "制度/年假.md"),
        ("./docs/制度/年假.md", "制度/年假.md"),
        ("docs/named.md", "差旅制度"),
        ("差旅制度", "差旅制度"),
    ):
        found = index.explain(given, alice)
        assert (found.doc_id, found.state) == (doc_id, "live"), given
    assert index.explain("年假.md", alice).state == "absent"
    for given in ("docs/named.md", "./docs/制度/年假.md"):
        found = index.explain(given, Context("other", "alice"))
        assert (found.doc_id, found.state) == (given, "absent"), "the name that another tenant gave is not told"


@pytest.mark.promise("OBS-5", "ERR-1")
def test_a_path_that_fits_two_documents_is_refused_and_a_name_never_is(index: Index, alice: Context) -> None:
    for doc_id in ("a.md", "docs/a.md"):
        index.upsert("acme", doc_id, 1, "text", "甲", ["alice"])
    error = error_of(index.explain, "x/docs/a.md", alice)
    assert str(error) == "invalid_parameter: document: the name of one is required, a path that fits 2 given"
    assert [index.explain(name, alice).doc_id for name in ("a.md", "docs/a.md", "y/a.md")] == [
        "a.md",
        "docs/a.md",
        "a.md",
    ]


@pytest.mark.promise("OBS-5", "ERR-1")
@pytest.mark.parametrize("given", [7, None, "", "x" * 5000, "\ud800", "a\x00", " a", b"a"], ids=repr)
def test_a_name_that_is_none_is_refused(index: Index, alice: Context, given: Any) -> None:
    assert code_of(index.explain, given, alice) == "invalid_identity"


@pytest.mark.promise("OBS-5")
def test_context_and_hits_are_checked_as_elsewhere(kb: Index, alice: Context) -> None:
    context: Any = "alice"
    assert code_of(kb.explain, "travel", context) == "trusted_context_required"
    assert code_of(kb.explain, "travel", alice, 7) == "hits_list_required"
    assert code_of(kb.explain, "travel", alice, [{}] * 201) == "too_many_hits"
    kb.close()
    assert code_of(kb.explain, "travel", alice) == "index_closed"
