"""Assembly: whole or refused, intervals over everything, budgets on metadata (CTX-16…CTX-25, CTX-28, CTX-52)."""

from typing import Any

import pytest

from kbretrieval import Provenance, retrieval
from kbretrieval.context import Budget, Item, Package, Piece, Policy, Role, Selection, material
from kbretrieval.context.rendering import SEPARATOR
from kbretrieval.errors import ContextMustReadMissing
from kbretrieval.store.connection import Connection
from tests.context.place import ALICE, BODIES, LEAVE, REFUND, Place
from tests.unit.doubles import code_of, error_of


def size(text: str) -> int:
    """UTF-8 bytes."""
    return len(text.encode("utf-8"))


@pytest.mark.promise("CTX-20")
def test_intervals_follow_the_order_and_cover_everything(place: Place) -> None:
    pieces = [Piece("refund", 4, 20), "leave", Piece("refund", 0, 4)]
    package = place.tasks.assemble(place.scope(), must_read=pieces[:2], optional=pieces[2:])
    assert [item.doc_id for item in package.items] == ["refund", "leave", "refund"]
    edges = [item.start for item in package.items] + [package.items[-1].end]
    assert edges[0] == 0 and edges[-1] == len(package.text)
    assert [item.end for item in package.items] == edges[1:]
    for item in package.items:
        source = BODIES[item.doc_id][item.source_start : item.source_end]
        assert package.text[item.text_start : item.text_end] == source
        part = package.text[item.start : item.end].removesuffix(SEPARATOR)
        assert (size(part), item.number) == (item.bytes, package.items.index(item))
    assert package.bytes == size(package.text)
    assert package.text.count(SEPARATOR) == 2


@pytest.mark.promise("CTX-16", "CTX-52")
def test_a_role_gets_exactly_its_fields(place: Place) -> None:
    uri = "file:///hr/sick.md"
    source = "# 病假\n\n病假凭证三日内提交。"
    place.index.upsert("acme", "sick", 1, "markdown", source, ["alice"], provenance=Provenance(uri=uri, version="7"))
    place.tasks.release("acme", "sick", ["answering"])
    place.tasks.put_collection("acme", "policies", ["sick"])
    roles = (Role("reading", ("title", "text")), Role("titles", ("title",)), Role("links", ("provenance",)))
    place.tasks.set_policy("acme", Policy(roles=(*roles, Role("citing", ("title", "provenance", "text")))))

    def text(role: str) -> str:
        scope = place.scope(selection=Selection(["policies"], role=role))
        package = place.tasks.assemble(scope, must_read=["sick"])
        snapshot = place.tasks.freeze(scope, package)
        carriers = repr((package, snapshot, scope, place.tasks.inspect(snapshot.id, scope.context())))
        for secret, field in ((uri, "provenance"), ("病假凭证", "text"), ("title: 病假", "title")):
            assert (secret in carriers) == (field in scope.fields), (role, field)
        assert all((item.title is not None) == ("title" in scope.fields) for item in package.items)
        return package.text

    assert text("reading") == "title: 病假\n\n" + source
    assert text("titles") == "title: 病假"
    assert text("links") == f"provenance: {uri} 7"
    assert text("citing") == f"title: 病假\nprovenance: {uri} 7\n\n" + source


@pytest.mark.promise("CTX-17")
def test_must_read_material_is_whole_or_the_call_says_what_is_missing(place: Place) -> None:
    whole = size("title: 退款\n\n" + REFUND)
    fits, short = place.scope(budget=Budget(input_bytes=whole)), place.scope(budget=Budget(input_bytes=whole - 1))
    assert REFUND in place.tasks.assemble(fits, must_read=["refund"]).text
    error = error_of(place.tasks.assemble, short, must_read=["travel", "refund", Piece("leave", 0, 999), "leave"])
    assert isinstance(error, ContextMustReadMissing)
    assert error.missing == (
        (0, "travel", "context_out_of_scope"),
        (1, "refund", "context_too_large"),
        (2, "leave", "context_out_of_scope"),
    )
    assert "4 must-read pieces given, 3 of them" in error.facts


@pytest.mark.promise("CTX-18", "CTX-19")
def test_optional_material_that_does_not_fit_is_listed_and_changes_nothing(place: Place) -> None:
    scope = place.scope(budget=Budget(input_bytes=size("title: 退款\n\n" + REFUND) + 20))
    alone = place.tasks.assemble(scope, must_read=["refund"])
    more = place.tasks.assemble(scope, must_read=["refund"], optional=["leave", "travel", "nowhere"])
    assert (more.text, more.items) == (alone.text, alone.items)
    assert [(item.number, item.doc_id, item.code) for item in more.omitted] == [
        (0, "leave", "context_too_large"),
        (1, "travel", "context_out_of_scope"),
        (2, "nowhere", "context_out_of_scope"),
    ]


@pytest.mark.promise("CTX-19")
def test_absent_optional_material_leaves_the_rest_byte_identical(place: Place) -> None:
    scope = place.scope()
    with_gaps = place.tasks.assemble(scope, must_read=["refund"], optional=["travel", "leave", "nowhere"])
    without = place.tasks.assemble(scope, must_read=["refund"], optional=["leave"])
    assert (with_gaps.text, with_gaps.items) == (without.text, without.items)
    assert without.text == f"title: 退款\n\n{REFUND}{SEPARATOR}title: 年假\n\n{LEAVE}"


@pytest.mark.promise("CTX-18", "CTX-28")
def test_optional_material_that_the_task_cannot_pay_is_listed(place: Place) -> None:
    refund, leave = size("title: 退款\n\n" + REFUND), size("title: 年假\n\n" + LEAVE)
    scope = place.scope(budget=Budget(total_bytes=refund + leave))
    package = place.tasks.assemble(scope, must_read=["refund"], optional=["leave"])
    assert [item.code for item in package.omitted] == ["context_budget_exhausted"], "the separator has its price"
    assert place.tasks.account(scope).input_bytes == refund


def _bodies_loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect the statements that bring a body, or a stretch of one, out of the database."""
    loaded: list[str] = []
    original = Connection.run

    def run(self: Connection, statement: str, values: Any = ()) -> Any:
        rows = original(self, statement, values)
        if any(isinstance(value, str) and "入职满一年" in value for row in rows for value in row):
            loaded.append(statement)
        return rows

    monkeypatch.setattr(Connection, "run", run)
    return loaded


@pytest.mark.promise("CTX-22", "CTX-23")
def test_budgets_are_judged_before_any_payload_is_loaded(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    small = place.scope(budget=Budget(input_bytes=20, call_bytes=20))
    poor = place.scope(task="T-8", budget=Budget(total_bytes=20))
    loaded = _bodies_loaded(monkeypatch)
    assert code_of(place.tasks.assemble, small, must_read=["leave"]) == "context_must_read_missing"
    assert code_of(place.tasks.assemble, poor, must_read=["leave"]) == "context_budget_exhausted"
    assert code_of(place.tasks.read, small, "leave", 0, 15) == "context_too_large"
    assert code_of(place.tasks.read, poor, "leave", 0, 15) == "context_budget_exhausted"
    assert place.tasks.assemble(small, optional=["leave"]).omitted[0].code == "context_too_large"
    assert loaded == []
    rich = place.scope(task="T-9")
    place.tasks.assemble(rich, must_read=["leave"])
    assert loaded != [], "the net catches what it is for"


@pytest.mark.promise("CTX-23", "CTX-21")
def test_the_price_is_the_exact_number_of_bytes(place: Place) -> None:
    place.index.upsert("acme", "mixed", 1, "text", "a年𠮷é\n" * 40, ["alice"])
    place.tasks.release("acme", "mixed", ["answering"])
    place.tasks.put_collection("acme", "policies", ["mixed", "refund"])
    scope = place.scope()
    package = place.tasks.assemble(scope, must_read=[Piece("mixed", 3, 77), "refund"], optional=["mixed"])
    account = place.tasks.account(scope)
    assert account.input_bytes == package.bytes == size(package.text)
    assert (account.output_tokens, account.output_left) == (0, Budget().output_tokens)
    assert account.input_left == Budget().total_bytes - package.bytes


@pytest.mark.promise("CTX-21")
def test_there_is_one_default_budget(place: Place) -> None:
    scope = place.tasks.authorize_scope(ALICE, "T-7", "answering", Selection(["policies"]))
    assert scope.budget == Budget() == Policy().limits


@pytest.mark.promise("CTX-12")
def test_what_was_verified_is_what_is_used(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each body is read once, and the rows of a search come from the one read that proved their commit."""
    loaded: list[int] = []
    shown: list[int] = []
    body, rows = material.document_by_key, retrieval.found_chunks
    monkeypatch.setattr(material, "document_by_key", lambda at, key: loaded.append(key) or body(at, key))
    monkeypatch.setattr(retrieval, "found_chunks", lambda *given: shown.extend(given[2]) or rows(*given))
    scope = place.scope()
    pieces = [Piece("refund", 0, 10), "leave", Piece("refund", 10, 20)]
    package = place.tasks.assemble(scope, must_read=pieces)
    assert len(loaded) == len(set(loaded)) == 2
    found = place.tasks.search(scope, "退款期限")
    assert len(shown) == len(set(shown)) >= len(found.rows) == 1
    assert [item.doc_id for item in package.items] == ["refund", "leave", "refund"]
    assert len(loaded) == 2, "a search loads no body"


@pytest.mark.promise("CTX-25")
def test_a_bounded_set_of_named_pieces_can_be_asked_for(place: Place) -> None:
    scope = place.scope()
    assert len(place.tasks.assemble(scope, optional=[Piece("refund", n, n + 1) for n in range(30)]).items) == 30
    assert code_of(place.tasks.assemble, scope, must_read=["refund"] * 201) == "context_input_invalid"
    assert code_of(place.tasks.assemble, scope, must_read="refund") == "context_input_invalid"
    assert code_of(place.tasks.assemble, scope, must_read=[7]) == "context_input_invalid"
    for start, end in ((-1, None), (0, 0), (3, 2), (True, None), (0, 2.0)):
        assert code_of(Piece, "refund", start, end) == "context_input_invalid"


@pytest.mark.promise("CTX-24")
def test_a_part_never_passes_for_the_whole(place: Place) -> None:
    scope = place.scope(budget=Budget(input_bytes=60, call_bytes=30))
    assert code_of(place.tasks.read, scope, "refund", 0, 30) == "context_too_large"
    assert code_of(place.tasks.assemble, scope, must_read=["refund"]) == "context_must_read_missing"
    part = place.tasks.assemble(scope, must_read=[Piece("refund", 0, 4)])
    assert (part.items[0].source_start, part.items[0].source_end) == (0, 4)
    read = place.tasks.read(scope, "refund")
    assert (read.has_more, read.end < len(REFUND)) == (True, True)


def test_nothing_is_a_package_too(place: Place) -> None:
    package: Package = place.tasks.assemble(place.scope())
    items: tuple[Item, ...] = package.items
    assert (package.text, items, package.bytes) == ("", (), 0)
