"""A small security suite: each scene is a few calls on an index of a few documents, and says one thing.

The unbroken build passes them all; every mutant in `mutants` fails at least the scene that it names. Here are the
scenes of names, channels and texts; `voucher_scenes` and `order_scenes` have the others.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kbretrieval import Context, Hit, Index
from kbretrieval.retrieval import Search
from kbretrieval.store.chunk_rows import found_chunks
from kbretrieval.store.fts import match_expression
from tests.unit.doubles import Table, code_of, sql

ALICE, BOB = Context("acme", "alice"), Context("acme", "bob")
STRANGER = Context("beta", "alice")
TEXT = "# 差旅\n\n住宿每晚限额五百元"
OTHER = "# 差旅\n\n住宿每晚限额九百元"
QUERY = "住宿限额"
UNRELATED = "无关词语"
FILE = "kb.sqlite"
SEARCHES: tuple[dict[str, Any], ...] = (
    {"mode": "lexical"},
    {"mode": "vector"},
    {"mode": "lexical", "lexical": "fts5"},
)


@contextmanager
def opened(folder: Path, **named: Any) -> Iterator[Index]:
    with Index.open(folder / FILE, **named) as index:
        yield index


def put(index: Index, doc_id: str, acl: Sequence[str], text: str = TEXT, revision: int = 1, **named: Any) -> None:
    index.upsert(named.pop("tenant", "acme"), doc_id, revision, "markdown", text, list(acl), **named)


def voucher(index: Index, doc_id: str = "d", reader: Context = ALICE) -> Hit:
    found = [hit for hit in index.search(QUERY, reader, limit=100) if hit.doc_id == doc_id]
    assert found, "a document that the reader may see is found"
    return found[0]


def quoted(index: Index, hits: Sequence[Any], reader: Context = ALICE) -> list[str]:
    return [item.doc_id for item in index.answer(hits, reader, limit=10).evidence]


def verdicts(index: Index, hits: Sequence[Any], reader: Context = ALICE) -> list[str]:
    return [item.verdict for item in index.audit(hits, reader)]


def eligible(index: Index, reader: Context) -> set[int]:
    """How many rows each way of searching lets a query of the reader see, asked with one that finds nothing."""
    return {index.search(UNRELATED, reader, **chosen).channels[0].eligible for chosen in SEARCHES}


# Who may call, and under which name


def a_group_is_no_principal(folder: Path) -> None:
    assert code_of(Context, "acme", "group:hr") == "invalid_identity"


def a_group_has_no_colon(folder: Path) -> None:
    assert code_of(Context, "acme", "carol", ("hr:boss",)) == "invalid_identity"


def everyone_is_no_principal(folder: Path) -> None:
    assert code_of(Context, "acme", "*") == "invalid_identity"


def a_name_has_no_invisible_character(folder: Path) -> None:
    assert code_of(Context, "acme", "ali\u200dce") == "invalid_identity"


def only_a_real_context_is_trusted(folder: Path) -> None:
    forged: Any = SimpleNamespace(tenant="acme", principal="alice", groups=(), entries=lambda: ("alice", "*"))
    with opened(folder) as index:
        put(index, "d", ["alice"])
        hit = voucher(index)
        assert code_of(index.search, QUERY, forged) == "trusted_context_required"
        assert code_of(index.answer, [hit], forged) == "trusted_context_required"


def a_list_of_readers_is_a_list(folder: Path) -> None:
    with opened(folder) as index:
        assert code_of(index.upsert, "acme", "d", 1, "markdown", TEXT, "bob") == "explicit_acl_list_required"


def a_group_entry_admits_no_namesake(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["hr", "alice"])
        member = Context("acme", "carol", ("hr",))
        assert eligible(index, member) == {0}
        assert quoted(index, [replace(voucher(index), principal="carol")], member) == []


def a_principal_is_matched_exactly(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice"])
        capital = Context("acme", "Alice")
        assert eligible(index, capital) == {0}
        assert quoted(index, [replace(voucher(index), principal="Alice")], capital) == []


# What the channels may rank


def a_forbidden_document_is_in_no_channel(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice"])
        put(index, "mine", ["bob"], "# 年假\n\n五天")
        assert eligible(index, BOB) == {1}
        for chosen in SEARCHES:
            result = index.search(QUERY, BOB, **chosen)
            assert [trace.scored for trace in result.channels if trace.channel == "lexical"] == [0]
            assert list(result) == []


def a_forbidden_vector_is_not_compared(folder: Path) -> None:
    with opened(folder, encoder=Table("table-2")) as index:
        put(index, "d", ["alice"])
        assert list(index.search(QUERY, BOB, mode="vector")) == []


def another_tenants_document_is_in_no_channel(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice"])
        put(index, "own", ["alice"], "# 年假\n\n五天", tenant="beta")
        assert eligible(index, STRANGER) == {1}
        assert [list(index.search(QUERY, STRANGER, **chosen)) for chosen in SEARCHES] == [[], [], []]


def a_dead_row_is_in_no_channel(folder: Path) -> None:
    """Beside three living ones, so that its segment is not written anew at once."""
    with opened(folder) as index:
        for doc_id in ("d", "e", "f", "g"):
            put(index, doc_id, ["alice"])
        assert eligible(index, ALICE) == {4}
        index.delete("acme", "g", 2)
        assert eligible(index, ALICE) == {3}


def one_readers_view_is_not_anothers(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice"])
        put(index, "e", ["alice", "bob"])
        assert [eligible(index, reader) for reader in (ALICE, BOB, ALICE)] == [{2}, {1}, {2}]


def a_changed_list_is_seen_by_the_next_search(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice"])
        assert eligible(index, ALICE) == {1}
        index.set_acl("acme", "d", ["bob"], 1)
        assert (eligible(index, ALICE), eligible(index, BOB)) == ({0}, {1})


def a_row_that_says_deleted_is_not_ranked_by_fts5(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice"])
        sql(folder / FILE, "UPDATE documents SET live = 0")
        assert list(index.search(QUERY, ALICE, mode="lexical", lexical="fts5")) == []


def a_quote_mark_cannot_leave_its_term(folder: Path) -> None:
    assert match_expression(['a" OR "b']) == '"a"" OR ""b"'


class Revoking(Search):
    """A search in whose middle, once, the right to read is withdrawn by another connection."""

    path: Path
    left = 1

    def eligible(self, snapshot: Any) -> Any:
        seen = super().eligible(snapshot)
        if self.left:
            self.left = 0
            with Index.open(self.path) as other:
                other.set_acl("acme", "d", ["bob"], 1)
        return seen


def a_right_that_ends_during_a_search_is_gone(folder: Path) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice"])
        kept = index.search(QUERY, ALICE)
        search = Revoking(index._engine, QUERY, ALICE, 10, "hybrid", kept.options)
        search.path = folder / FILE
        assert list(search.run()) == []


# What is asked a second time, where texts are read


def asked_again(folder: Path, reader: Context, spoilt: str | None = None) -> None:
    with opened(folder) as index:
        put(index, "d", ["alice"])
        key = voucher(index).chunk_key
        assert list(found_chunks(index._engine.connection, ALICE, [key])) == [key]
        if spoilt:
            sql(folder / FILE, spoilt)
        assert found_chunks(index._engine.connection, reader, [key]) == {}


def texts_of_another_tenant_are_not_read(folder: Path) -> None:
    asked_again(folder, STRANGER)


def texts_of_others_are_not_read(folder: Path) -> None:
    asked_again(folder, BOB)


def texts_of_deleted_documents_are_not_read(folder: Path) -> None:
    asked_again(folder, ALICE, "UPDATE documents SET live = 0")
