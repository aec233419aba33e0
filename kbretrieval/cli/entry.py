"""One entry point: UTF-8 output, one line for every refusal, exit statuses from the one table."""

import errno
import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.exceptions import TyperException

from kbretrieval._version import __version__
from kbretrieval.cli import (
    benchmarks,
    doctor,
    documents,
    experiments,
    explaining,
    migrating,
    models,
    notebooks,
    quality,
    searching,
    statistics,
    synchronising,
    upkeep,
    verification,
)
from kbretrieval.cli.shown import safe
from kbretrieval.cli.usage import refusal_of
from kbretrieval.errors import KBError, StorageIOError
from kbretrieval.errors.base import STATE
from kbretrieval.evidence.errors import EvidenceError

INTERRUPTED = 130
PROGRAM = "kbretrieval"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit(0)


def _overview(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """A permission-aware retrieval index whose quotations can be checked."""


def application() -> typer.Typer:
    """Return the application with every command."""
    app = typer.Typer(
        name=PROGRAM,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_overview)
    for room in (
        *(documents, synchronising, searching, explaining, migrating, upkeep, statistics),
        *(doctor, experiments, quality, models, verification, notebooks, benchmarks),
    ):
        room.add_to(app)
    return app


class _Closed(io.StringIO):
    """Stands for an output that was closed before the start, for which Python has no stream at all."""

    def write(self, text: str, /) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def _use_utf8() -> None:
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = io.StringIO()
    # A pipe or a C locale must not turn Chinese into an encoding error.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _refuse(error: KBError | EvidenceError, status: int) -> int:
    # A file that is no index of ours can hold anything where a contract stands.
    print(" ".join(safe(str(error)).splitlines()), file=sys.stderr)
    return status


def _reader_is_gone() -> int:
    # What is still buffered would raise once more when the interpreter ends.
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Every refusal is one line on stderr, `code: facts`, without a traceback; an interrupt is 130; a reader that closes
    the pipe early has had enough, 0.

    Example:
        >>> main(["demo", "--fixtures", "no-such-folder"])
        2
    """
    _use_utf8()
    given = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        result = application()(args=given, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
    except KBError as error:
        return _refuse(error, error.exit_status)
    except EvidenceError as error:
        return _refuse(error, STATE)
    except TyperException as error:
        refusal = refusal_of(error)
        return _refuse(refusal, refusal.exit_status)
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):  # typer ends the process where a pipe is broken
        return _reader_is_gone()
    except OSError as error:
        system = StorageIOError(f"the system refused a read or a write (errno {error.errno})")
        return _refuse(system, system.exit_status)
    return result if isinstance(result, int) else 0
