"""Searching inside a scope: an authorised set, made smaller, and every omission counted (CTX-4…CTX-9, CTX-62)."""

import json
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Context, Index
from kbretrieval.chunking import windows
from kbretrieval.context import Budget, Left, Policy, Role, Scope, Selection, TaskContexts
from kbretrieval.context.account import REFUSAL_BYTES
from kbretrieval.context.search import ROW_BYTES
from kbretrieval.errors import ContractChanged
from kbretrieval.migration import migrate
from kbretrieval.store.connection import Connection
from tests.context.place import ALICE, BODIES, Place
from tests.unit.doubles import Table, code_of, error_of


@pytest.mark.promise("CTX-7")
@pytest.mark.parametrize("query", ["", " ", "\n\t", "\u3000", None, 7])
def test_a_blank_query_is_refused_before_anything_is_read(
    place: Place, monkeypatch: pytest.MonkeyPatch, query: Any
) -> None:
    scope = place.scope()
    statements: list[str] = []
    original = Connection.run
    monkeypatch.setattr(Connection, "run", lambda self, *a: statements.append(a[0]) or original(self, *a))
    assert code_of(place.tasks.search, scope, query) == "context_input_invalid"
    assert statements == []


@pytest.mark.promise("CTX-8")
def test_an_empty_result_says_which_kind_of_empty(place: Place) -> None:
    scope = place.scope()
    found = place.tasks.search(scope, "退款")
    assert (found.rows[0].doc_id, found.empty_reason, found.message) == ("refund", None, None)
    none = place.tasks.search(scope, "zyxwv")
    assert (none.rows, none.empty_reason) == ((), "no_match")
    nothing = place.tasks.search(place.scope(selection=Selection(["empty"])), "退款")
    assert (nothing.rows, nothing.empty_reason) == ((), "empty_index")
    assert none.message and nothing.message and none.message != nothing.message


@pytest.mark.promise("CTX-4", "CTX-62")
def test_documents_leave_one_by_one_and_each_class_is_counted(place: Place) -> None:
    place.index.upsert("acme", "faq", 1, "markdown", "# 问答\n\n退款期限见退款政策。", ["alice"])
    place.tasks.release("acme", "faq", ["answering"])
    place.tasks.put_collection("acme", "policies", ["refund", "leave", "faq"])
    scope = place.scope()
    place.index.set_acl("acme", "refund", ["bob"], 1)
    place.revise("leave", 2, "# 年假\n\n退款期限与年假无关。")
    found = place.tasks.search(scope, "退款期限")
    assert [row.doc_id for row in found.rows] == ["faq"]
    counted = {(item.code, item.what): item.count for item in found.left}
    assert counted[("context_access_withdrawn", "documents")] == 1
    assert counted[("context_revision_changed", "documents")] == 1


@pytest.mark.promise("CTX-4", "CTX-68")
def test_candidates_beyond_the_limit_and_below_the_floor_are_counted(tmp_path: Path) -> None:
    table = Table("table-2", {"退款": (1.0, 0.0), "远": (0.0, 1.0)}, floor=0.9)
    with Index.open(tmp_path / "kb.sqlite", encoder=table) as index:
        tasks = TaskContexts(index)
        for n in range(6):
            index.upsert("acme", f"d{n}", 1, "text", f"退款说明第{n}条" if n < 5 else "远", ["alice"])
            tasks.release("acme", f"d{n}", ["answering"])
        tasks.put_collection("acme", "all", [f"d{n}" for n in range(6)])
        scope = tasks.authorize_scope(ALICE, "T", "answering", Selection(["all"]))
        found = tasks.search(scope, "退款", limit=2)
    counted = {(item.code, item.what): item.count for item in found.left}
    assert len(found.rows) == 2
    assert counted == {("beyond_limit", "candidates"): 3, ("below_floor", "vector"): 1}


@pytest.mark.promise("CTX-68", "CTX-4")
def test_every_candidate_is_shown_or_counted(tmp_path: Path) -> None:
    """More than a window of chunks for each channel, and none of the same for both."""
    body = "退款。 " * 100 + "无关 " * 200
    parts = [body[start:end] for start, end in windows(body, 8, 0)]
    vectors = dict.fromkeys([part for part in parts if "退款" not in part] + ["退款"], (0.0, 1.0))
    table = Table("table-2", vectors, floor=0.5)
    with Index.open(tmp_path / "kb.sqlite", encoder=table, chunk_size=8, overlap=0) as index:
        tasks = TaskContexts(index)
        index.upsert("acme", "long", 1, "text", body, ["alice"])
        tasks.release("acme", "long", ["answering"])
        tasks.put_collection("acme", "all", ["long"])
        found = tasks.search(tasks.authorize_scope(ALICE, "T", "answering", Selection(["all"])), "退款", limit=10)
    counted = {(item.code, item.what): item.count for item in found.left}
    lexical, vector = found.channels
    assert (lexical.returned, vector.returned) == (50, 50)
    assert (len(found.rows), counted[("beyond_limit", "candidates")]) == (10, 90)
    assert counted[("beyond_window", "vector")] == vector.beyond_window
    assert lexical.returned + counted.get(("beyond_window", "lexical"), 0) == lexical.scored


@pytest.mark.promise("CTX-5")
@pytest.mark.parametrize("mode", ["lexical", "vector", "hybrid"])
def test_a_search_only_makes_the_authorised_set_smaller(tmp_path: Path, mode: Any) -> None:
    """The best vector of all is another collection's or unreadable: it takes no place and moves no score."""
    table = Table("table-2", {"退款期限": (1.0, 0.0)}, floor=0.1)
    with Index.open(tmp_path / "kb.sqlite", encoder=table) as index:
        index._engine.connection.run("PRAGMA synchronous=OFF")
        tasks = TaskContexts(index)
        for doc_id, source in BODIES.items():
            index.upsert("acme", doc_id, 1, "markdown", source, ["bob"] if doc_id == "secret" else ["alice"])
            tasks.release("acme", doc_id, ["answering"])
        tasks.put_collection("acme", "policies", ["refund", "secret"])
        scope = tasks.authorize_scope(ALICE, "T", "answering", Selection(["policies"]))
        before = tasks.search(scope, "退款期限", mode=mode)
        for n in range(12):
            index.upsert("acme", f"other{n}", 1, "markdown", "# 退款\n\n退款期限 退款期限", ["alice"])
        after = tasks.search(scope, "退款期限", mode=mode)
    assert [row.doc_id for row in before.rows] == ["refund"]
    assert after.rows == before.rows
    assert [trace.eligible for trace in after.channels] == [trace.eligible for trace in before.channels] == [1, 1]


@pytest.mark.promise("CTX-6")
def test_names_and_numbers_are_found_where_vectors_see_nothing(tmp_path: Path) -> None:
    """An encoder that finds every text alike and below its floor takes no way away."""
    table = Table("table-2", dict.fromkeys(("SKU-2049", "500元", "丁晓琳"), (0.0, 1.0)), floor=0.9)
    with Index.open(tmp_path / "kb.sqlite", encoder=table) as index:
        tasks = TaskContexts(index)
        for doc_id, source in (BODIES | {"people": "# 联系人\n\n报销请找丁晓琳。"}).items():
            index.upsert("acme", doc_id, 1, "markdown", source, ["alice"])
            tasks.release("acme", doc_id, ["answering"])
        tasks.put_collection("acme", "all", [*BODIES, "people"])
        scope = tasks.authorize_scope(ALICE, "T", "answering", Selection(["all"]))
        for query, doc_id in (("SKU-2049", "refund"), ("500元", "travel"), ("丁晓琳", "people")):
            found = tasks.search(scope, query)
            assert found.rows[0].doc_id == doc_id
            assert [place.channel for place in found.rows[0].channels] == ["lexical"]
            assert tasks.search(scope, query).rows == found.rows


@pytest.mark.promise("CTX-9", "CTX-15", "CTX-61")
def test_another_generation_changes_the_index_and_no_document_right_or_release(place: Place) -> None:
    """Old results keep the index from which they came; scopes and snapshots stand on documents and go on."""
    scope = place.scope()
    snapshot = place.snapshot(scope)
    old, before = place.tasks.search(scope, "退款期限"), place.index.documents("acme")
    identity = (old.contract_sha256, old.commit)
    with Index.open(place.path, chunk_size=220) as strict:
        named = TaskContexts(strict)
        migrate(place.path, chunk_size=16, overlap=4)
        error = error_of(named.search, scope, "退款期限")
        assert error is not None and error.code == "index_projection_contract_changed_rebuild_required"
        assert "220" in error.facts and "16" in error.facts
    new = place.tasks.search(scope, "退款期限")
    assert new.contract_sha256 != old.contract_sha256 and new.commit > old.commit
    assert (old.contract_sha256, old.commit) == identity
    assert [(row.doc_id, row.end) for row in (*old.rows, *new.rows)] == [
        ("refund", len(BODIES["refund"])),
        ("refund", 16),
    ]
    kept = ("doc_id", "state", "revision", "acl_revision", "acl", "sha256", "title")
    after = place.index.documents("acme")
    assert [[getattr(row, name) for name in kept] for row in after] == [
        [getattr(row, name) for name in kept] for row in before
    ]
    assert place.tasks.check_dependencies(snapshot.id).valid
    place.tasks.release("acme", "refund", [])
    gone = place.tasks.search(scope, "退款期限")
    assert gone.rows == () and gone.left[0] == Left("context_not_released", "documents", 1)


@pytest.mark.promise("CTX-14")
def test_a_rebuild_reaches_the_last_chunk_of_the_last_document(tmp_path: Path) -> None:
    """More documents and more chunks than are staged in one transaction."""
    path = tmp_path / "kb.sqlite"
    with Index.open(path, chunk_size=16, overlap=0) as index:
        index._engine.connection.run("PRAGMA synchronous=OFF")
        tasks = TaskContexts(index)
        for number in range(12):
            source = "".join(f"条目{number:02}{line:04}。\n" for line in range(50))
            index.upsert("acme", f"d{number:02}", 1, "text", source, ["*"])
            tasks.release("acme", f"d{number:02}", ["answering"])
        tasks.put_collection("acme", "all", [f"d{number:02}" for number in range(12)])
    assert migrate(path, chunk_size=20, overlap=10).chunks > 2 * 256
    with Index.open(path) as index:
        tasks = TaskContexts(index)
        scope = tasks.authorize_scope(ALICE, "T", "answering", Selection(["all"]))
        for token in ("000000", "050049", "110049"):
            row = tasks.search(scope, f"条目{token}", limit=1).rows[0]
            assert token in row.preview
        assert index.check() == ()


@pytest.mark.promise("CTX-53", "CTX-63")
def test_rows_show_where_they_stand_under_keys_that_name_their_corpus(place: Place) -> None:
    found = place.tasks.search(place.scope(), "SKU-2049")
    row = found.rows[0]
    assert found.weights == (1.0, 1.0)
    assert row.key.startswith("slice:") and row.document_key == "doc:refund"
    assert (row.title, row.start, row.preview_cut) == ("退款", 0, False)
    body = BODIES["refund"]
    assert row.preview == body[row.start : row.end]
    shown = json.loads(json.dumps(found.to_dict(), ensure_ascii=False))["rows"][0]
    assert shown["channels"] == {item.channel: {"rank": item.rank, "score": item.score} for item in row.channels}


@pytest.mark.promise("CTX-63", "CTX-68")
def test_a_long_preview_says_that_it_was_cut(place: Place) -> None:
    place.index.upsert("acme", "long", 1, "text", "退款" + "长" * 200, ["alice"])
    place.tasks.release("acme", "long", ["answering"])
    place.tasks.put_collection("acme", "policies", ["long"])
    row = place.tasks.search(place.scope(), "退款").rows[0]
    assert (len(row.preview), row.preview_cut, row.end) == (120, True, 202)


@pytest.mark.promise("CTX-63")
@pytest.mark.parametrize(("text", "shown"), [("👨\u200d👩\u200d👧尾", 119), ("q" + "\u0301" * 9, 119), ("甲乙", 120)])
def test_a_preview_does_not_end_inside_a_cluster(place: Place, text: str, shown: int) -> None:
    place.index.upsert("acme", "family", 1, "markdown", "退" * 119 + text, ["alice"])
    place.tasks.release("acme", "family", ["answering"])
    place.tasks.put_collection("acme", "policies", ["family"])
    row = place.tasks.search(place.scope(), "退", mode="lexical").rows[0]
    assert (row.preview, row.preview_cut) == (("退" * 119 + text)[:shown], True)


@pytest.mark.promise("CTX-46")
def test_nothing_is_locked_while_the_encoder_works(tmp_path: Path) -> None:
    table = Table("table-2", floor=0.1)
    path = tmp_path / "kb.sqlite"
    with Index.open(path, encoder=table) as index, Index.open(path, encoder=table, wait_seconds=0) as other:
        tasks = TaskContexts(index)
        index.upsert("acme", "refund", 1, "markdown", BODIES["refund"], ["alice"])
        tasks.release("acme", "refund", ["answering"])
        tasks.put_collection("acme", "policies", ["refund"])
        scope = tasks.authorize_scope(ALICE, "T", "answering", Selection(["policies"]))
        written: list[Any] = []
        table.before = lambda: written.append(other.set_acl("acme", "refund", ["bob"], 1))
        found = tasks.search(scope, "退款")
    assert len(written) == 1
    assert found.rows == ()
    assert found.empty_reason == "empty_index"


@pytest.mark.promise("CTX-62", "CTX-12")
def test_a_revision_that_falls_between_check_and_search_is_left_out(tmp_path: Path) -> None:
    table = Table("table-2", floor=0.1)
    path = tmp_path / "kb.sqlite"
    with Index.open(path, encoder=table) as index, Index.open(path, encoder=Table("table-2", floor=0.1)) as other:
        tasks = TaskContexts(index)
        for doc_id in ("refund", "leave"):
            index.upsert("acme", doc_id, 1, "markdown", BODIES[doc_id], ["alice"])
            tasks.release("acme", doc_id, ["answering"])
        tasks.put_collection("acme", "policies", ["refund", "leave"])
        scope = tasks.authorize_scope(ALICE, "T", "answering", Selection(["policies"]))
        table.before = lambda: other.upsert("acme", "refund", 2, "markdown", "# 新\n\n退款改了", [])
        found = tasks.search(scope, "退款")
    assert [row.doc_id for row in found.rows] == ["leave"]
    assert [(item.code, item.count) for item in found.left] == [("context_revision_changed", 1)]


@pytest.mark.promise("CTX-15", "CTX-29")
def test_a_search_that_meets_another_generation_is_paid_once(place: Place) -> None:
    """It runs anew; the attempt that read nothing costs what a refusal costs."""
    scope = place.scope(budget=Budget(total_bytes=10 * ROW_BYTES + 100))
    migrate(place.path, chunk_size=16, overlap=4)
    assert place.tasks.search(scope, "退款期限").rows[0].doc_id == "refund"
    first, second = place.tasks.account(scope).calls
    assert (first.input_bytes, first.code) == (REFUSAL_BYTES, ContractChanged.code)
    assert second.code is None


@pytest.mark.promise("CTX-8", "CTX-62")
def test_a_scope_that_empties_while_it_is_searched_is_empty_and_not_without_a_match(tmp_path: Path) -> None:
    table = Table("table-2", floor=0.1)
    with Index.open(tmp_path / "kb.sqlite", encoder=table) as index:
        tasks = TaskContexts(index)
        index.upsert("acme", "refund", 1, "markdown", BODIES["refund"], ["alice"])
        tasks.release("acme", "refund", ["answering"])
        tasks.put_collection("acme", "policies", ["refund"])
        scope = tasks.authorize_scope(ALICE, "T", "answering", Selection(["policies"]))
        table.before = lambda: tasks.release("acme", "refund", [])
        found = tasks.search(scope, "退款")
    assert (found.rows, found.empty_reason) == ((), "empty_index")
    assert [(item.code, item.count) for item in found.left] == [("context_not_released", 1)]


@pytest.mark.promise("CTX-52")
def test_a_role_without_text_cannot_search_or_read_it(place: Place) -> None:
    place.tasks.set_policy("acme", Policy(roles=(Role("reading", ("title", "text")), Role("titles", ("title",)))))
    scope = place.scope(selection=Selection(["policies"], role="titles"))
    assert code_of(place.tasks.search, scope, "退款") == "context_field_removed"
    assert code_of(place.tasks.read, scope, "refund") == "context_field_removed"


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("context_input_invalid", {"limit": 0}),
        ("context_input_invalid", {"limit": 51}),
        ("context_input_invalid", {"limit": True}),
        ("invalid_search_options", {"mode": "magic"}),
        ("bounded_query_required", {"query": "x" * 1025}),
    ],
)
def test_bad_requests_are_refused(place: Place, code: str, arguments: dict[str, Any]) -> None:
    assert code_of(place.tasks.search, place.scope(), **({"query": "退款"} | arguments)) == code


def test_a_search_pays_for_what_it_shows(place: Place) -> None:
    scope: Scope = place.scope()
    found = place.tasks.search(scope, "退款")
    shown = sum(len((row.preview + row.title + row.heading).encode("utf-8")) for row in found.rows)
    account = place.tasks.account(scope)
    assert [(call.id, call.phase, call.input_bytes) for call in account.calls] == [(found.call, "search", shown)]
    poor = place.scope(task="T-9", budget=Budget(total_bytes=100))
    assert code_of(place.tasks.search, poor, "退款") == "context_budget_exhausted"
    assert place.tasks.account(place.scope(context=Context("acme", "bob"))).calls == ()
