"""The order of a run: who sees what between steps, kills between them, other writers, other runs (SYN-7, POL-3)."""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Context, Index, KBError
from kbretrieval.identity import EVERYONE as STAR
from kbretrieval.sync import Policy, Tick
from kbretrieval.sync import plan as plan_module
from kbretrieval.sync.execution import Execution
from kbretrieval.sync.plan import Step
from tests.unit.doubles import code_of
from tests.unit.sync_place import TENANT, Shelf, World, codes, kinds, policy, without_waiting_for_the_disk

READERS = ("alice", "bob", "carol")
LISTS: tuple[tuple[str, ...], ...] = ((), ("alice", "bob"), ("bob", "carol"), ("*",))


def state(version: int) -> tuple[dict[str, str], Policy]:
    """Every list of LISTS before against every list after, with and without a new text; and files that come and go."""
    files, rules = {}, {}
    for number, (old, new, changed) in enumerate((o, n, c) for o in LISTS for n in LISTS for c in (False, True)):
        files[f"d{number:02}.txt"] = f"共同{'新' if changed and version else '旧'}版"
        rules[f"d{number:02}"] = new if version else old
    for number, acl in enumerate(LISTS):
        name = f"{'come' if version else 'go'}{number}"
        files[f"{name}.txt"], rules[name] = f"共同{'新' if version else '旧'}版", acl
    return files, policy((), **rules)


Seen = dict[str, set[tuple[str, str]]]


def found(index: Index) -> Seen:
    """Documents with the text that each reader finds."""
    made = {}
    for reader in READERS:
        hits = index.search("共同", Context(TENANT, reader), limit=100, mode="lexical", window=1000)
        made[reader] = {(hit.doc_id, hit.text) for hit in hits}
    return made


def stored(index: Index) -> Seen:
    """Documents with the text that each reader may read; the title of such a text is the whole of it."""
    live = [status for status in index.documents(TENANT) if status.state == "live"]
    return {
        reader: {(status.doc_id, status.title or "") for status in live if {reader, STAR} & set(status.acl)}
        for reader in READERS
    }


def allowed(files: dict[str, str], rules: Policy) -> Seen:
    """What a state allows each reader, by the policy alone."""
    return {
        reader: {(name, text) for name, text in files.items() if {reader, STAR} & set(rules.acl_for(name))}
        for reader in READERS
    }


def watched_run(path: Path) -> list[set[tuple[str, str]]]:
    """Go from the one state to the other; return what somebody saw after some step and neither state allows."""
    old, new = state(0), state(1)
    before, after = allowed(*old), allowed(*new)
    seen: list[set[tuple[str, str]]] = []
    with Index.open(path) as index, Index.open(path) as other:
        world = World(path, index)
        world.run(*old)

        def look(tick: Tick) -> None:
            if tick.phase == "write":
                now = stored(other)
                seen.append(set().union(*(now[reader] - before[reader] - after[reader] for reader in READERS)))

        assert found(index) == stored(index) == before
        report = world.run(*new, progress=look, confirm_deletions=99)
        assert (report.refused, found(index), stored(index)) == ((), after, after)
    assert len(seen) > 40
    return [item for item in seen if item]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred commits wait long for the disk; these tests look at order."""
    without_waiting_for_the_disk(monkeypatch)


@pytest.mark.promise("POL-3")
@pytest.mark.usefixtures("quick")
def test_between_two_steps_nobody_reads_what_neither_state_allows(tmp_path: Path) -> None:
    assert watched_run(tmp_path / "kb.sqlite") == []


@pytest.mark.promise("POL-3")
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "phases",
    [
        {"tighten": 0, "delete": 1, "loosen": 2, "create": 3, "update": 3, "restore": 3},
        {"delete": 0, "create": 1, "update": 1, "restore": 1, "tighten": 2, "loosen": 3},
    ],
    ids=["loosen before content", "content before tighten"],
)
def test_another_order_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phases: Any) -> None:
    monkeypatch.setattr(plan_module, "_PHASES", phases)
    # An ACL order that is not the planned one is refused; here every step takes what is stored.
    monkeypatch.setattr(Execution, "_carried_out", _whatever_is_stored(Execution._carried_out))
    assert watched_run(tmp_path / "kb.sqlite")


def _whatever_is_stored(original: Callable[..., int]) -> Callable[..., int]:
    def carried_out(self: Execution, step: Step, plan: Any) -> int:
        if step.kind in ("tighten", "loosen"):
            stored = self.index.status(self.tenant, step.doc_id).acl_revision or 0
            self.index.set_acl(self.tenant, step.doc_id, list(step.acl or ()), stored)
            return 0
        return original(self, step, plan)

    return carried_out


@pytest.mark.promise("POL-3")
def test_a_right_waits_for_the_text_that_it_was_meant_for(index: Index, index_path: Path) -> None:
    """Redacted and widened in one run, and the redacted text cannot be read, stored, or is not there any more."""
    world = World(index_path, index)
    secret = {"a.md": "未删节的机密", "b.json": '{"title": "未删节的机密", "sections": []}', "c.md": "未删节的机密"}
    world.run(secret, policy(("alice",)))
    report = world.run({"a.md": b"\xff", "b.json": "{", "c.md": "公开"}, policy(("alice", "bob")))
    assert kinds(report) == [("update", "c.md"), ("loosen", "c.md")]
    assert world.found("未删节的机密", "bob") == set()
    assert world.found("公开", "bob") == {"c.md"}


@contextmanager
def meddling(path: Path, phase_done: int, deed: Callable[[Index], object]) -> Iterator[Callable[[Tick], None]]:
    """A progress callback in which another connection does something after so many steps."""
    with Index.open(path) as other:

        def call(tick: Tick) -> None:
            if tick.phase == "write" and tick.done == phase_done:
                deed(other)

        yield call


@pytest.mark.promise("SYN-7", "POL-3")
def test_a_policy_that_somebody_else_changed_is_not_overwritten(index: Index, index_path: Path) -> None:
    world = World(index_path, index)
    world.run({"a.md": "旧", "b.md": "旧"}, policy(("alice",)))
    deed: Callable[[Index], object] = lambda other: other.set_acl(TENANT, "b.md", ["bob"], 1)  # noqa: E731
    with meddling(index_path, 1, deed) as progress:
        report = world.run({"a.md": "新", "b.md": "新"}, policy(()), progress=progress)
    assert codes(report) == {"b.md": "stale_acl_revision"}
    # bob reads the old text by somebody's decision; the new one is not written under a list that nobody planned.
    assert [(step.kind, step.doc_id, step.state) for step in report.steps] == [
        ("tighten", "a.md", "done"),
        ("tighten", "b.md", "refused"),
        ("update", "a.md", "done"),
        ("update", "b.md", "withheld"),
    ]
    assert (world.found("新", "bob"), world.documents()["b.md"].acl) == (set(), ("bob",))
    assert world.run({"a.md": "新", "b.md": "新"}, policy(())).refused == ()


@pytest.mark.promise("SYN-7", "SYN-5")
@pytest.mark.parametrize(
    ("deed", "code"),
    [
        (lambda other: other.upsert(TENANT, "b.md", 2, "markdown", "别人", []), "stale_or_conflicting_revision"),
        (lambda other: other.delete(TENANT, "b.md", 2), "stale_or_conflicting_revision"),
        (lambda other: other.upsert(TENANT, "c.md", 2, "markdown", "别人", []), "delete_requires_new_revision"),
        (lambda other: other.upsert(TENANT, "new.md", 1, "markdown", "别人", []), "stale_or_conflicting_revision"),
    ],
    ids=["updated", "deleted", "wanted again", "created"],
)
def test_a_document_that_somebody_else_changed_is_refused(
    index: Index, index_path: Path, deed: Callable[[Index], object], code: str
) -> None:
    world = World(index_path, index)
    world.run({"a.md": "旧", "b.md": "旧", "c.md": "旧"}, policy(("alice", "bob")))
    with meddling(index_path, 1, deed) as progress:
        files = {"a.md": "新", "b.md": "新", "new.md": "新"}
        report = world.run(files, policy(("alice", "bob"), a=("alice",)), progress=progress)
    assert list(codes(report).values()) == [code]
    again = world.run(files, policy(("alice", "bob"), a=("alice",)), restore_all=True)
    assert again.refused == ()
    texts = {name: item.sha256 for name, item in world.documents().items() if name in files}
    assert set(texts) == set(files) and len(set(texts.values())) == 1


class Killed(BaseException):
    """Stands for the end of the process."""


OLD = {"a.md": "旧", "b.md": "---\nid: x\n---\n旧", "c.md": "旧", "d.md": "旧", "gone.md": "旧"}
NEW = {"a.md": "新", "moved.md": "---\nid: x\n---\n新", "c.md": "旧", "d.md": "新", "new.md": "新", "back.md": "新"}
OLD_RULES = policy(("alice", "bob"), c=("alice",))
NEW_RULES = policy(("alice", "bob"), a=("bob", "carol"), c=("*",), d=())


def begun(path: Path) -> None:
    """The state that a run is killed in: documents to tighten, delete, update, create, restore and loosen."""
    with Index.open(path) as index:
        world = World(path, index)
        world.run(OLD | {"back.md": "旧"}, OLD_RULES)
        world.run(OLD, OLD_RULES)


@pytest.mark.promise("SYN-7", "POL-3")
@pytest.mark.usefixtures("quick")
def test_killed_after_any_step_and_run_again_it_ends_in_the_same_state(tmp_path: Path) -> None:
    begun(tmp_path / "old.sqlite")

    def run(name: str, steps: int) -> tuple[World, Any]:
        path = Path(shutil.copy(tmp_path / "old.sqlite", tmp_path / name))

        def progress(tick: Tick) -> None:
            if tick.phase == "write" and tick.done == steps:
                raise Killed

        world = World(path)
        try:
            return world, world.run(NEW, NEW_RULES, restore_all=True, progress=progress)
        except Killed:
            return world, None

    undisturbed, report = run("whole.sqlite", 0)
    total = len(report.steps)
    assert {step.kind for step in report.steps} == {"tighten", "delete", "create", "update", "restore", "loosen"}
    for steps in range(1, total + 1):
        world, ended = run(f"{steps}.sqlite", steps)
        assert ended is None
        left = world.run(NEW, NEW_RULES, restore_all=True)
        assert (len(left.steps), left.refused) == (total - steps, ())
        assert world.dump() == undisturbed.dump()


@contextmanager
def held(path: Path) -> Iterator[tuple[threading.Event, list[str | None]]]:
    """Another run that stands still after its first step until it is let go; what became of it."""
    reached, go, outcome = threading.Event(), threading.Event(), list[str | None]()

    def progress(tick: Tick) -> None:
        if tick.phase == "write":
            reached.set()
            go.wait(30)

    def other() -> None:
        with Index.open(path) as index:
            outcome.append(code_of(World(path, index).run, {"a.md": "甲", "b.md": "甲"}, progress=progress))

    thread = threading.Thread(target=other)
    thread.start()
    assert reached.wait(30)
    try:
        yield go, outcome
    finally:
        go.set()
        thread.join()


@pytest.mark.promise("SYN-7")
def test_of_two_runs_one_is_busy(tmp_path: Path) -> None:
    path = tmp_path / "kb.sqlite"
    Index.open(path).close()
    with held(path) as (_, outcome), Index.open(path, wait_seconds=0.05) as index:
        with pytest.raises(KBError, match="busy"):
            World(path, index).run({"a.md": "乙", "b.md": "乙"})
        # A single write and a dry run have nothing to wait for.
        index.upsert(TENANT, "c", 1, "text", "丙", [])
        assert len(World(path, index).run({"a.md": "乙", "b.md": "乙"}, dry_run=True).steps) == 2
    assert outcome == [None]
    with Index.open(path) as index:
        assert kinds(World(path, index).run({"a.md": "甲", "b.md": "甲"})) == []


@pytest.mark.promise("SYN-7")
def test_of_two_runs_one_waits_and_nothing_is_mixed(tmp_path: Path) -> None:
    path = tmp_path / "kb.sqlite"
    Index.open(path).close()
    with held(path) as (go, outcome), Index.open(path) as index:
        threading.Timer(0.1, go.set).start()
        report = World(path, index).run({"a.md": "乙", "b.md": "乙"})
    assert outcome == [None]
    assert kinds(report, "done") == [("update", "a.md"), ("update", "b.md")]


@pytest.mark.promise("SYN-7")
def test_without_the_lock_two_runs_would_be_mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kb.sqlite"
    Index.open(path).close()
    monkeypatch.setattr(Index, "lone_run", lambda self: nullcontext())
    with held(path) as (_, _), Index.open(path, wait_seconds=0.05) as index:
        assert kinds(World(path, index).run({"a.md": "乙", "b.md": "乙"}), "done")
        assert len({item.sha256 for item in World(path, index).documents().values()}) == 1
    with Index.open(path) as index:
        assert World(path, index).run(Shelf({"a.md": "乙", "b.md": "乙"}), dry_run=True).steps == ()
