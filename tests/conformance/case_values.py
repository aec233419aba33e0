"""The names that a case may use (shared/cases/README.md) and that need no folder; every process has them."""

import gc
import hashlib
import itertools
import json
import logging
import math
import random
import sqlite3
import struct
import time
import traceback
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from kbretrieval import BOOK, Context, Hit, Index, KBError, TermEncoder
from kbretrieval.chunking import chunks
from kbretrieval.encoders.bge import BGEEncoder
from kbretrieval.projection import MAX_CODE_POINTS, project
from tests.conformance import case_model
from tests.unit import doubles


def sha(text: str) -> str:
    """Return the hexadecimal SHA-256 of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def fused(hit: Hit) -> float:
    """Return the fused value of a hit."""
    return hit.fused


def acl_revision(index: Index, tenant: str, doc_id: str) -> int | None:
    """Return the ACL revision of a document."""
    return index.status(tenant, doc_id).acl_revision


def exported_result(index: Index, query: str, context: Context, **options: Any) -> bytes:
    """Return everything that a search and its answer export, as bytes."""
    hits = index.search(query, context, **options)
    whole = {"hits": [hit.to_dict() for hit in hits], "answer": index.answer(hits, context).to_dict()}
    return json.dumps(whole, ensure_ascii=False, sort_keys=True).encode("utf-8")


def patch(file: str, old: bytes, new: bytes) -> int:
    """Replace bytes of a file by as many others; the number of places."""
    assert len(old) == len(new)
    content = Path(file).read_bytes()
    Path(file).write_bytes(content.replace(old, new))
    return content.count(old)


def read_bytes(file: str) -> bytes:
    """Return the bytes of a file."""
    return Path(file).read_bytes()


class Measured:
    """The processor time of a call, taken when it is divided by that of another: both by turns.

    A machine that is slow for a second is then slow for both. As in `timeit`, nothing is collected in between: that
    would take the longer, the more objects other tests have left.
    """

    def __init__(self, call: Callable[[], object], turns: int, typical: Callable[[Sequence[float]], float]) -> None:
        self._call, self._turns, self._typical = call, turns, typical

    def _seconds(self) -> float:
        start = time.process_time()
        self._call()
        return time.process_time() - start

    def __truediv__(self, other: "Measured") -> float:
        collecting = gc.isenabled()
        gc.disable()
        try:
            turns = [(self._seconds(), other._seconds()) for _ in range(self._turns)]
        finally:
            if collecting:
                gc.enable()
        mine, others = zip(*turns, strict=True)
        return self._typical(mine) / self._typical(others)


def median_ms(call: Callable[[], object]) -> Measured:
    """Return the median time of 200 calls."""
    return Measured(call, 200, median)


def timed_upsert(source: str) -> Measured:
    """Return the time of cutting a Markdown source, the best of five or, where it is short, of more."""
    projection = project(source, "markdown")
    return Measured(lambda: chunks(projection), 5 if len(source) > 500_000 else 25, min)


def timed_code(call: Callable[[], object]) -> tuple[str | None, float]:
    """Return the code of a refusal, None if there was none, and the seconds that the call took."""
    start = time.perf_counter()
    code = doubles.code_of(call)
    return code, time.perf_counter() - start


def documented_limit() -> int:
    """Return the number of code points that a source may have."""
    return MAX_CODE_POINTS


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@contextmanager
def captured_logs(level: str) -> Iterator[list[str]]:
    """Every line that any logger says from this level on."""
    root, handler = logging.getLogger(), _Lines()
    before = root.level
    root.addHandler(handler)
    root.setLevel(level)
    try:
        yield handler.lines
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


def formatted_traceback_without_source_lines(error: BaseException) -> str:
    """Return a traceback, its causes and contexts included, without the lines of source that Python adds."""
    frames: traceback.TracebackException | None = traceback.TracebackException.from_exception(error)
    told = []
    while frames is not None:
        bare = [(frame.filename, frame.lineno, frame.name, "") for frame in frames.stack if frame.lineno]
        told += [*traceback.StackSummary.from_list(bare).format(), *frames.format_exception_only()]
        frames = frames.__cause__ or frames.__context__
    return "".join(told)


def plain_names() -> dict[str, Any]:
    """Return these names and what they stand for."""
    readers = (doubles.docs, doubles.rank, doubles.score, doubles.quotes, doubles.code_of, doubles.error_of)
    classes = (BGEEncoder, Context, Hit, Index, KBError, TermEncoder, doubles.Table, case_model.TinyGraph)
    models = (case_model.flip_byte, case_model.encode_with)
    files = (sha, fused, acl_revision, exported_result, patch, read_bytes, replace)
    times = (median_ms, timed_code, timed_upsert, documented_limit)
    logs = (captured_logs, formatted_traceback_without_source_lines)
    modules = (itertools, json, math, random, sqlite3, struct, time, unicodedata)
    items = (*readers, *classes, *models, *files, *times, *logs, *modules)
    people = {name: Context("acme", name) for name in ("alice", "bob", "carol")}
    others = {f"{tenant}_{name}": Context(tenant, name) for tenant in ("beta", "gamma") for name in people}
    dump = {"dump": doubles.logical_dump, "BOOK": BOOK, "MODES": doubles.MODES}
    return {item.__name__: item for item in items} | people | others | dump
