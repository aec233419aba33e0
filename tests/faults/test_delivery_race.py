"""Delivery against revocation in two processes: whichever commits first decides (CTX-45, CTX-47)."""

import time
from collections import Counter
from pathlib import Path

import pytest

from kbretrieval import Context, Index
from kbretrieval.context import Selection, TaskContexts
from tests.faults.telling import Told
from tests.faults.workers import Worker

pytestmark = pytest.mark.alone

MODULE = "tests.faults.delivering"
ALICE = Context("acme", "alice")
STEP_SECONDS = 0.0007


def raced(path: Path, rounds: int, *broken: str) -> Counter[str]:
    """How so many races ended: `late` is a delivery whose check saw the older list after the revocation's commit.

    Each round grants, freezes and then revokes while the other process delivers. Where the delivery came first, the
    next revocation comes earlier, and later where it came last, so that both stay close to each other.
    """
    ended: Counter[str] = Counter()
    with Index.open(path) as index, Worker(MODULE, *broken) as worker:
        index._engine.connection.run("PRAGMA synchronous=OFF")  # locks are raced here, not the disk
        tasks = TaskContexts(index)
        index.upsert("acme", "refund", 1, "markdown", "# 退款\n\n七天。", ["alice"])
        tasks.release("acme", "refund", ["answering"])
        tasks.put_collection("acme", "policies", ["refund"])
        revision, offset = 1, 0.0
        for _ in range(rounds):
            scope = tasks.authorize_scope(ALICE, "T", "answering", Selection(["policies"]))
            package = tasks.assemble(scope, must_read=["refund"])
            snapshot = tasks.freeze(scope, package)
            moment = time.time() + (0.02 if ended else 2.0)
            worker.tell(path=str(path), snapshot=snapshot.id, payload=package.text, moment=moment)
            while time.time() < moment + offset:
                pass
            revision = index.set_acl("acme", "refund", ["bob"], revision).acl_revision
            told, revoked = worker.hear(), index.status("acme", "refund").acl_commit or 0
            ended[_ending(told, revoked)] += 1
            offset += STEP_SECONDS if "code" in told else -STEP_SECONDS
            offset = min(max(offset, -0.015), 0.03)
            revision = index.set_acl("acme", "refund", ["alice"], revision).acl_revision
    return ended


def _ending(told: dict[str, int | str], revoked: int) -> str:
    if "code" in told:
        return str(told["code"])
    return "delivered" if int(told["commit"]) < revoked else "late"


@pytest.mark.promise("CTX-47", "CTX-45")
def test_no_delivery_is_checked_against_a_list_that_was_replaced(
    tmp_path: Path, full: bool, record_property: Told
) -> None:
    """In full, a thousand rounds; both endings must come up, or nothing was raced."""
    ended = raced(tmp_path / "kb.sqlite", 1000 if full else 30)
    record_property("rounds", 1000 if full else 30)
    assert set(ended) == {"delivered", "context_access_withdrawn"}, ended


@pytest.mark.promise("CTX-47", "CTX-45")
def test_a_build_that_checks_outside_the_transaction_is_caught(tmp_path: Path) -> None:
    assert raced(tmp_path / "kb.sqlite", 30, "checking-outside")["late"] > 0
