"""Another process's commits reach a reader through the change log; what it then finds is bit for bit what a reader
finds that has just opened the file, however far it fell behind (VEC-8, CON-6, PRF-4)."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kbretrieval.snapshot.snapshot as snapshots
from kbretrieval import Context, Index, KBError
from kbretrieval.store.commits import current_commit
from tests.faults.histories import ENCODERS, MODULE, TENANTS, Event, World, opened
from tests.faults.workers import Worker

Build = Callable[[pytest.MonkeyPatch], object]

CALLERS = (
    Context("acme", "alice", ("hr",)),
    Context("acme", "bob"),
    Context("acme", "carol", ("it", "hr")),
    Context("beta", "alice"),
)
VIEWS: tuple[tuple[Any, dict[str, Any]], ...] = (
    ("lexical", {}),
    ("vector", {}),
    ("hybrid", {"lexical": "fts5", "rerank": "title"}),
    ("vector", {"window": 1}),
    ("lexical", {"lexical": "fts5"}),
    ("hybrid", {"window": 2}),
)
QUERIES = ("aa bb", "退款 税", "税 cc")
TEXTS = ("aa bb 退款", "aa", "bb cc 税率 aa bb 说明", "收税 退款 cc", "税", "aa bb cc 退款 税率 收税 说明 aa", "", "  ")
ACLS = (("alice",), ("*",), ("group:hr",), ("bob", "alice"), ("bob",), (), ("group:it", "carol"))


def seen(index: Index, turn: int) -> list[Any]:
    """What four callers get: hits with every field and the trace of each channel, or the refusal's code.

    Every caller asks for two of the views with two of the queries; which, changes with the turn.
    """
    made: list[Any] = []
    for place, caller in enumerate(CALLERS):
        for number, (mode, options) in enumerate(VIEWS[(turn + place) % 3 :: 3]):
            query = QUERIES[(turn + turn // 3 + number) % len(QUERIES)]
            try:
                made.append(index.search(query, caller, 100, mode, **options).to_dict())
            except KBError as error:
                made.append(error.code)
    return made


@dataclass(frozen=True)
class Step:
    """Some commits, and whether the reader that looks seldom looks after them, too; the other one always does."""

    events: tuple[Event, ...]
    seldom: bool = False


def short(rows: int) -> Build:
    """Segments of so few rows, that filling, joining and thinning out begin with the first documents."""
    return lambda patch: patch.setattr(snapshots, "SEGMENT_ROWS", rows)


def unlike(writer: Worker, path: Path, encoder: str, history: Sequence[Step], *builds: Build) -> list[tuple[int, str]]:
    """Apply a history in the other process and return the looks whose results are not those of a fresh index.

    Two readers of this process keep their index from the first commit on, in the given builds; the fresh one is opened
    for each look, in the code as it is.
    """
    world, found = World(), list[tuple[int, str]]()
    with ExitStack() as stack:
        readers = {name: stack.enter_context(opened(path, encoder, chunk_size=12, overlap=4)) for name in ("1", "2")}
        for turn, step in enumerate(history):
            calls, wanted = zip(*map(world.order, step.events), strict=True)
            assert writer.ask(path=str(path), encoder=encoder, calls=calls) == list(wanted)
            with opened(path, encoder) as fresh:
                expected = seen(fresh, turn)
            for name, reader in readers.items():
                if name == "1" or step.seldom or turn == len(history) - 1:
                    with pytest.MonkeyPatch.context() as patch:
                        for build in builds:
                            build(patch)
                        if seen(reader, turn) != expected:
                            found.append((turn, name))
        assert world.stored(readers["1"])
    return found


@pytest.fixture(scope="module")
def writer() -> Iterator[Worker]:
    """The process that writes, one for all histories."""
    with Worker(MODULE) as worker:
        yield worker


@pytest.fixture(scope="module")
def fresh_path(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Names of files that are not there yet."""
    folder, numbers = tmp_path_factory.mktemp("histories"), count()
    return lambda: folder / f"{next(numbers)}.sqlite"


def put(*numbers: int, text: str = TEXTS[0], acl: tuple[str, ...] = ("alice",), tenant: str = "acme") -> list[Event]:
    """Content of some documents, each a little different from the others."""
    return [Event("upsert", number, f"{text} nr{number}", acl, tenant) for number in numbers]


def gone(*numbers: int) -> list[Event]:
    """Deletions."""
    return [Event("delete", number) for number in numbers]


def acl(number: int, *entries: str) -> Event:
    """A policy event."""
    return Event("acl", number, acl=entries)


def steps(*each: Sequence[Event], seldom: Sequence[int] = ()) -> list[Step]:
    """A history of steps; those after which the seldom reader looks are named."""
    return [Step(tuple(events), number in seldom) for number, events in enumerate(each)]


LONG = " ".join(TEXTS[:6])
NAMED = {
    "policy alone": steps(
        put(0, 1, 2, acl=("alice", "bob")),
        [acl(1, "bob")],
        [acl(0, "bob"), acl(1, "alice")],
        [acl(2)],
        [acl(2, "group:hr"), acl(0, "carol", "group:it")],
        seldom=[0, 2],
    ),
    "tombstones alone": steps(put(*range(6)), gone(1, 4), gone(9), gone(1, 9), gone(0, 2, 3, 5), seldom=[0, 2]),
    "twice between two looks": steps(
        put(0, 1),
        [*put(0, text=TEXTS[2]), *put(0, text=TEXTS[3])],
        [*put(1, text=LONG), acl(1, "bob"), *put(1), acl(1, "alice", "bob")],
        [*gone(0), replace(put(0, text="aa cc")[0], kind="restore", acl=("bob",)), *put(0, text="aa bb")],
        [*put(7), *gone(7), *put(8), acl(8, "bob"), *gone(8)],
        seldom=[0, 3],
    ),
    "far behind": steps(
        put(*range(8)),
        *([*put(n % 8, text=TEXTS[n % 6]), acl((n + 3) % 8, *ACLS[n % 7])] for n in range(12)),
        [*gone(0, 3), *put(1)],
        seldom=[0],
    ),
    "one by one": steps(*(put(n, text=TEXTS[n % 6]) for n in range(10)), gone(2), put(3), gone(7, 8), seldom=[4]),
    "long documents": steps(put(0, 1, text=LONG), put(0, text="aa"), put(2, text=LONG), gone(1), put(0, text=LONG)),
    "everything goes": steps(put(0, 1, 2), gone(0, 1, 2), put(3), gone(3), put(4, 5), seldom=[0, 3]),
    "the other tenant alone": steps(
        put(0, 1), put(0, 1, tenant="beta"), [acl(0, "bob")], [Event("delete", 1, tenant="beta")], seldom=[0, 2]
    ),
    "purged": steps(
        put(*range(5)), [*gone(1, 2), Event("purge")], [*put(3, text="aa cc"), Event("purge"), *put(6)], seldom=[0]
    ),
    "nothing to read": steps(
        put(0, text=""), put(0, text="  "), [Event("again", 0, "  ")], put(1, acl=()), gone(0), seldom=[1]
    ),
}

EVENTS = st.builds(
    Event,
    st.sampled_from(("upsert",) * 6 + ("acl", "acl", "delete", "delete", "restore", "restore", "again", "purge")),
    st.integers(0, 5),
    st.sampled_from(TEXTS),
    st.sampled_from(ACLS),
    st.sampled_from([TENANTS[0]] * 4 + [TENANTS[1]]),
)
FEW, MANY = st.lists(EVENTS, min_size=1, max_size=3), st.lists(EVENTS, min_size=8, max_size=16)
HISTORIES = st.lists(st.builds(Step, st.one_of(FEW, FEW, FEW, MANY).map(tuple), st.booleans()), min_size=2, max_size=5)


@pytest.mark.promise("VEC-8", "CON-6", "PRF-4")
@pytest.mark.parametrize("name", NAMED)
def test_after_this_history_a_reader_finds_what_a_fresh_one_finds(
    writer: Worker, fresh_path: Callable[[], Path], name: str
) -> None:
    assert unlike(writer, fresh_path(), "dense", NAMED[name], short(5)) == []


@pytest.mark.promise("VEC-8", "CON-6", "PRF-4")
@pytest.mark.parametrize("encoder", ENCODERS)
def test_after_any_history_a_reader_finds_what_a_fresh_one_finds(
    writer: Worker, fresh_path: Callable[[], Path], encoder: str, full: bool
) -> None:
    joined, made = snapshots.joined, Counter[str]()

    def counted(segments: Sequence[Any], *rest: Any) -> Any:
        made["several" if len(segments) > 1 else "one, thinned out"] += 1
        return joined(segments, *rest)

    @settings(max_examples=150 if full else 9)
    @given(HISTORIES, st.sampled_from([1, 3, 8, snapshots.SEGMENT_ROWS]))
    def any_history(history: list[Step], rows: int) -> None:
        counting = lambda patch: patch.setattr(snapshots, "joined", counted)  # noqa: E731
        assert unlike(writer, fresh_path(), encoder, history, short(rows), counting) == []

    any_history()
    assert set(made) == {"several", "one, thinned out"}, "the histories are too short to test how segments are joined"


def changes(keep: Callable[[Any, int], bool]) -> Build:
    """A broken build: of what changed since a commit, it follows only some."""
    original = snapshots.changed_documents

    def told(connection: Any, tenant: str, since: int) -> Any:
        found = original(connection, tenant, since)
        return [item for item in found if since == 0 or keep(item, since)]

    return lambda patch: patch.setattr(snapshots, "changed_documents", told)


def last_commit_alone(patch: pytest.MonkeyPatch) -> None:
    """A broken build: it reads the change log of one commit, however many it missed."""
    original = snapshots.changed_documents

    def told(connection: Any, tenant: str, since: int) -> Any:
        return original(connection, tenant, max(since, current_commit(connection) - 1))

    patch.setattr(snapshots, "changed_documents", told)


def first_policy_for_ever() -> Build:
    """A broken build: a document keeps the ACL under which it was first seen."""
    known: dict[int, Any] = {}
    original = snapshots.acls_of

    def told(connection: Any, doc_keys: Any) -> Any:
        return {key: known.setdefault(key, found) for key, found in original(connection, doc_keys).items()}

    return lambda patch: patch.setattr(snapshots, "acls_of", told)


BROKEN: dict[str, tuple[Callable[[], Build], tuple[str, ...]]] = {
    "deaf to other processes": (lambda: changes(lambda item, since: False), ("one by one", "the other tenant alone")),
    "forgets tombstones": (lambda: changes(lambda item, since: item.live), ("tombstones alone", "everything goes")),
    "content alone": (lambda: changes(lambda item, since: item.content_commit > since), ("policy alone",)),
    "last commit alone": (lambda: last_commit_alone, ("far behind", "twice between two looks")),
    "first policy for ever": (first_policy_for_ever, ("policy alone", "twice between two looks", "far behind")),
}


@pytest.mark.promise("VEC-8", "CON-6")
@pytest.mark.parametrize(("name", "history"), [(name, history) for name in BROKEN for history in BROKEN[name][1]])
def test_a_build_that_does_not_follow_is_caught(
    writer: Worker, fresh_path: Callable[[], Path], name: str, history: str
) -> None:
    assert unlike(writer, fresh_path(), "terms", NAMED[history], BROKEN[name][0]()) != []


@pytest.mark.promise("VEC-8", "UPD-2", "CON-6")
def test_a_search_amid_commits_of_another_process_is_of_one_of_them(
    writer: Worker, fresh_path: Callable[[], Path]
) -> None:
    """Each result is that of one commit, whole; none is older than the one before; the last is of the last commit."""
    events = [*put(0, 1, text=LONG)]
    for n in range(18):
        events += [*put(n % 2, text=f"{LONG} {'aa ' * (n % 3)}"), acl(n % 2, "alice", f"p{n}")]
    world = World()
    calls = [world.order(event)[0] for event in events]

    def look(index: Index) -> str:
        return json.dumps(index.search(QUERIES[0], CALLERS[0], 100).to_dict())

    at: dict[str, int] = {}
    with opened(fresh_path(), "dense", chunk_size=12, overlap=4) as alone:
        for commit, (method, *arguments) in enumerate(calls, 1):
            getattr(alone, method)(*arguments)
            assert at.setdefault(look(alone), commit) == commit, "every commit shows"
    path, told = fresh_path(), list[int]()
    with opened(path, "dense", chunk_size=12, overlap=4) as reader:
        assert writer.ask(path=str(path), encoder="dense", calls=calls[:2]) == ["indexed"] * 2
        for begin in range(2, len(calls), 6):
            writer.tell(path=str(path), encoder="dense", calls=calls[begin : begin + 6])
            told += [at[look(reader)] for _ in range(8)]
            writer.hear()
            told.append(at[look(reader)])
            assert told[-1] == begin + 6
    assert told == sorted(told)
