"""The security suite, task contexts: each scene is a few calls on a place of four documents, and says one thing."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kbretrieval import Context
from kbretrieval.context import Policy, Role, Selection
from kbretrieval.projection import digest
from tests.context.place import ALICE, BOB, REFUND, TENANT, Place, opened_place
from tests.faults.security_scenes import FILE
from tests.unit.doubles import code_of, sql

OTHER = "beta"
TWIN = Context(OTHER, ALICE.principal)
FORGED = "# 退款\n\n退款期限为签收后九十天。"


@contextmanager
def _opened(folder: Path) -> Iterator[Place]:
    with opened_place(folder / FILE) as place:
        yield place


def _bound(place: Place) -> list[str]:
    return [bound.doc_id for bound in place.scope().documents]


def a_release_by_another_tenant_releases_nothing(folder: Path) -> None:
    with _opened(folder) as place:
        place.tasks.release(OTHER, "refund", ["answering"])
        place.tasks.release(TENANT, "refund", [])
        assert _bound(place) == ["leave"]


def a_collection_of_another_tenant_adds_no_member(folder: Path) -> None:
    with _opened(folder) as place:
        place.tasks.put_collection(OTHER, "policies", ["travel"])
        assert _bound(place) == ["leave", "refund"]


def a_release_for_another_purpose_is_none(folder: Path) -> None:
    with _opened(folder) as place:
        place.tasks.release(TENANT, "refund", ["training"])
        assert _bound(place) == ["leave"]


def a_revocation_ends_what_a_scope_bound(folder: Path) -> None:
    with _opened(folder) as place:
        scope = place.scope()
        place.index.set_acl(TENANT, "refund", ["bob"], 1)
        assert code_of(place.tasks.read, scope, "refund") == "context_access_withdrawn"


def a_text_under_a_bound_revision_is_the_bound_one(folder: Path) -> None:
    with _opened(folder) as place:
        scope = place.scope()
        sql(place.path, "UPDATE documents SET body = ?, sha256 = ? WHERE doc_id = 'refund'", FORGED, digest(FORGED))
        assert code_of(place.tasks.read, scope, "refund") == "context_revision_changed"


def a_body_that_is_not_its_digest_enters_no_task(folder: Path) -> None:
    with _opened(folder) as place:
        scope = place.scope()
        sql(place.path, "UPDATE documents SET body = ? WHERE doc_id = 'refund'", FORGED)
        assert code_of(place.tasks.read, scope, "refund") == "index_corrupt"


def a_policy_that_is_not_its_digest_allows_no_field(folder: Path) -> None:
    with _opened(folder) as place:
        place.tasks.set_policy(TENANT, Policy(roles=(Role("reading", ("title",)),)))
        sql(place.path, """UPDATE context_policies SET body = replace(body, '"title"', '"title","text"')""")
        asked = Selection(collections=["policies"], role="reading")
        assert code_of(place.scope, selection=asked) == "index_corrupt"


def a_snapshot_is_its_callers_alone(folder: Path) -> None:
    with _opened(folder) as place:
        snapshot = place.snapshot()
        assert code_of(place.tasks.replay, snapshot.id, ALICE) is None
        assert code_of(place.tasks.replay, snapshot.id, BOB) == "context_unknown"


def a_cursor_opens_its_own_place_alone(folder: Path) -> None:
    with _opened(folder) as place:
        scope = place.scope()
        assert code_of(place.tasks.read, scope, "refund", cursor="3." + "0" * 32) == "context_cursor_invalid"


def a_snapshot_of_another_scope_than_the_stored_one_is_not_sent(folder: Path) -> None:
    with _opened(folder) as place:
        snapshot = place.snapshot()
        text = place.tasks.replay(snapshot.id, ALICE).text
        ((body,),) = sql(place.path, "SELECT body FROM context_scopes LIMIT 1")
        other = body.replace('"answering"', '"training"', 1)
        sql(place.path, "UPDATE context_scopes SET body = ?, sha256 = ?", other, digest(other))
        assert code_of(place.tasks.deliver, snapshot.id, ALICE, text) == "context_snapshot_damaged"


def a_namesake_in_another_tenant_is_on_another_account(folder: Path) -> None:
    with _opened(folder) as place:
        scope = place.scope()
        before = place.tasks.account(scope)
        place.index.upsert(OTHER, "refund", 1, "markdown", REFUND, [ALICE.principal])
        place.tasks.release(OTHER, "refund", ["answering"])
        place.tasks.put_collection(OTHER, "policies", ["refund"])
        place.tasks.read(place.scope(context=TWIN), "refund")
        assert place.tasks.account(scope) == before


def a_purge_keeps_what_another_tenant_deleted_a_namesake_of(folder: Path) -> None:
    with _opened(folder) as place:
        snapshot = place.snapshot()
        place.index.upsert(OTHER, "refund", 1, "markdown", REFUND, [ALICE.principal])
        place.index.delete(OTHER, "refund", 2)
        place.index.purge()
        assert place.tasks.replay(snapshot.id, ALICE).reason is None
