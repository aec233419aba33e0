"""What the tests share: the fixture in several forms, small documents and queries, the command in its own process."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kbretrieval.offline import Document, Fixture, Query, Run, parse_fixture

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "kbretrieval" / "offline"
FIXTURE_PATH = ROOT / "fixtures" / "offline" / "semantic-search-fixture.json"
FIXTURE_BYTES = FIXTURE_PATH.read_bytes()
FIXTURE = parse_fixture(FIXTURE_BYTES)

ARGUMENTS = ("--top-k", "3", "--rank-window", "5", "--rrf-constant", "60")
MODES: Mapping[str, tuple[str, ...]] = {
    "plain": (),
    "optimised": ("-O",),
    "warnings are errors": ("-W", "error"),
    "both": ("-O", "-W", "error"),
}
TABLE = {
    "bm25": (0.750000, 0.833333, 0.819553),
    "dense": (1.000000, 1.000000, 0.951635),
    "hybrid": (1.000000, 1.000000, 1.000000),
}


def fixture_value() -> dict:
    """A fresh copy of the fixture as JSON values, to be changed at will."""
    return json.loads(FIXTURE_BYTES)


def changed(change: Callable[[dict], object]) -> bytes:
    """The fixture's bytes after one change of its values."""
    value = fixture_value()
    change(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=True).encode("utf-8", "surrogatepass")


def swapped(old: str, new: str) -> bytes:
    """The fixture's bytes after one textual change that JSON values cannot express."""
    text = FIXTURE_BYTES.decode("utf-8")
    if old not in text:
        raise LookupError(old)
    return text.replace(old, new, 1).encode("utf-8")


def table(run: Run) -> dict[str, tuple[float, float, float]]:
    """Recall, MRR and nDCG per channel, six decimals."""
    return {
        channel: (round(mean.recall, 6), round(mean.mrr, 6), round(mean.ndcg, 6))
        for channel, mean in run.macro.items()
        if mean is not None
    }


def a_document(document_id: str = "d", **fields: object) -> Document:
    """A small document on one axis that `a_query()` may see, with some fields changed."""
    usual = Document(document_id, "Title", "body", "alpha", ("guest",), "published", "en", "app", "r1", (1.0, 0.0))
    return replace(usual, **fields)


def a_query(**fields: object) -> Query:
    """A small query for `a_document()`, with some fields changed."""
    return replace(Query("q", "body", "alpha", ("guest",), ("en",), ("app",), (1.0, 0.0), {}, ()), **fields)


def with_query(fixture: Fixture, query: Query) -> Fixture:
    """A fixture of the same documents with this query alone."""
    return Fixture(fixture.representation, fixture.documents, (query,))


def python(
    *arguments: str, flags: Sequence[str] = (), cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run this interpreter without cache files and return what it wrote as bytes."""
    return subprocess.run(
        [sys.executable, "-B", *flags, *arguments],
        capture_output=True,
        check=False,
        cwd=cwd,
        env=None if env is None else {**bare_environment(), **env},
        timeout=120,
    )


def bare_environment() -> dict[str, str]:
    """No variable but those without which Windows cannot start a process."""
    return {name: os.environ[name] for name in ("SYSTEMROOT", "SYSTEMDRIVE") if name in os.environ}


def command(
    *arguments: str, flags: Sequence[str] = (), fixture: str = str(FIXTURE_PATH)
) -> subprocess.CompletedProcess[bytes]:
    """Run the documented command, without site packages, and return what it wrote."""
    chosen = arguments or ARGUMENTS
    return python("-m", "kbretrieval.offline", "--fixture", fixture, *chosen, flags=("-S", "-E", *flags))
