"""A log of events read back, line by line; each line is checked as strictly as any other input (OBS-4).

A process that is killed and a disk that is full may leave the beginning of an event; that line is told as torn, and
what follows it is read. A refusal names the line and never repeats it: of another file, handed in by mistake, nothing
shows in a message.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from kbretrieval.citation import Verdict
from kbretrieval.errors import InvalidObservationLog, InvalidPath, JsonTooDeep
from kbretrieval.json_source import check_depth
from kbretrieval.observers.events import (
    AnswerObserved,
    ChannelObserved,
    Event,
    SearchObserved,
    VerdictObserved,
    WriteObserved,
)
from kbretrieval.observers.watch import MAX_LABEL
from kbretrieval.options import MODES
from kbretrieval.store.opening import checked_path

MAX_LINE = 65_536
MAX_COUNT = 2**53
YEAR_10000 = 253_402_300_800.0
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

_BEGINNING = b'{"schema":"kbretrieval.'
_WORD = re.compile(r"[a-z][a-z0-9_]{0,63}")

Check = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Logged:
    """One line of a log: the event, and when it was written, in seconds since 1970 UTC, if the log has times.

    `event` is None where the line is the beginning of an event and no more.
    """

    event: Event | None
    at: float | None


class _Unfit(Exception):
    """What a line is not."""


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_COUNT


def _number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= MAX_COUNT


def _word(value: Any) -> bool:
    return type(value) is str and _WORD.fullmatch(value) is not None


def _label(value: Any) -> bool:
    return value is None or (type(value) is str and len(value) <= MAX_LABEL)


def _maybe(check: Check) -> Check:
    return lambda value: value is None or check(value)


_OUTCOME: dict[str, Check] = {"outcome": _word, "milliseconds": _number, "label": _label}
_SEARCH: dict[str, Check] = _OUTCOME | {
    "mode": lambda value: value is None or value in MODES,
    "channels": lambda value: type(value) is list and len(value) <= 9,
    "hits": _count,
}
_CHANNEL: dict[str, Check] = {
    "channel": _word,
    "state": lambda value: value in ("run", "skipped"),
    "reason": _maybe(_word),
    **dict.fromkeys(("eligible", "scored", "below_floor", "beyond_window", "returned"), _count),
}
_ANSWER: dict[str, Check] = _OUTCOME | {
    "verdicts": lambda value: type(value) is dict and set(value) <= set(VERDICTS) and all(map(_count, value.values())),
    "unjudged": _count,
    "quotations": _count,
    "abstained": lambda value: type(value) is bool,
}
_WRITE: dict[str, Check] = _OUTCOME | {"kind": _word, "waited_milliseconds": _number}


def _fields(value: Any, schema: str, checks: Mapping[str, Check]) -> dict[str, Any]:
    if type(value) is not dict or value.get("schema") != schema or set(value) != {"schema", *checks}:
        raise _Unfit("an event with exactly its fields")
    for name, check in checks.items():
        if not check(value[name]):
            raise _Unfit(f"{name} in its form")
    return {name: value[name] for name in checks}


def _search(value: Any) -> Event:
    made = _fields(value, SearchObserved.SCHEMA, _SEARCH)
    channels = [ChannelObserved(**_fields(item, ChannelObserved.SCHEMA, _CHANNEL)) for item in made.pop("channels")]
    return SearchObserved(channels=tuple(channels), **made)


def _answer(value: Any) -> Event:
    made = _fields(value, AnswerObserved.SCHEMA, _ANSWER)
    verdicts = [VerdictObserved(verdict, hits) for verdict, hits in made.pop("verdicts").items()]
    return AnswerObserved(verdicts=tuple(verdicts), **made)


def _write(value: Any) -> Event:
    return WriteObserved(**_fields(value, WriteObserved.SCHEMA, _WRITE))


_READERS = {SearchObserved.SCHEMA: _search, AnswerObserved.SCHEMA: _answer, WriteObserved.SCHEMA: _write}


def _begins_an_event(raw: bytes) -> bool:
    """Tell whether what is no JSON is the beginning of a line as the observer writes it."""
    given = raw.rstrip(b"\n")
    return given.startswith(_BEGINNING) or (given != b"" and _BEGINNING.startswith(given))


def _logged(raw: bytes) -> Logged:
    try:
        text = raw.decode("utf-8")
        check_depth(text)
        value = json.loads(text)
    except (ValueError, JsonTooDeep, RecursionError):
        if _begins_an_event(raw):
            return Logged(None, None)
        raise _Unfit("a JSON object in UTF-8") from None
    if type(value) is not dict:
        raise _Unfit("a JSON object in UTF-8")
    at = value.pop("at", None)
    if at is not None and not (_number(at) and at < YEAR_10000):
        raise _Unfit("a time in seconds")
    schema = value.get("schema")
    if type(schema) is not str or schema not in _READERS:
        raise _Unfit("an event of a known schema")
    return Logged(_READERS[schema](value), None if at is None else float(at))


def _numbered(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    try:
        with checked_path(path).open("rb") as file:
            number = 0
            while line := file.readline(MAX_LINE + 1):
                number += 1
                yield number, line
    except OSError as error:
        raise InvalidPath(f"a readable log is required (errno {error.errno})") from None


def read_log(path: str | os.PathLike[str]) -> Iterator[Logged]:
    """Yield the lines of a log, in its order; one at a time is in memory.

    Raises `invalid_path`, and `invalid_observation_log` with the number of the first line that is neither an event nor
    the beginning of one.

    Example:
        >>> import json, pathlib, tempfile
        >>> event = WriteObserved("delete", "deleted", 0.0, 1.5, None)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "events.jsonl")
        ...     _ = path.write_text(json.dumps(event.to_dict()), encoding="utf-8", newline="\\n")
        ...     [line.event == event for line in read_log(path)]
        [True]
    """
    for number, line in _numbered(path):
        logged, wanted = None, f"at most {MAX_LINE} bytes"
        if len(line) <= MAX_LINE:
            try:
                logged = _logged(line)
            except _Unfit as fault:
                wanted = str(fault)
        # Raised outside the handler: a parser's own error holds the line, and would stay reachable as context (ERR-1).
        if logged is None:
            raise InvalidObservationLog(f"line {number}: {wanted} required, something else is there")
        yield logged
