"""One entry point: UTF-8 output, one line for every refusal, exit statuses from the one table."""

import io
import sys
from collections.abc import Sequence

import typer
from typer.exceptions import TyperException

from kbretrieval.cli import benchmarks, doctor, experiments, models, notebooks, verification
from kbretrieval.errors import KBError
from kbretrieval.errors.base import INPUT

INTERRUPTED = 130


def application() -> typer.Typer:
    """Return the application with every command."""
    app = typer.Typer(
        name="kbretrieval",
        help="A permission-aware retrieval index whose quotations can be checked.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    for room in (doctor, experiments, models, verification, notebooks, benchmarks):
        room.add_to(app)
    return app


def _use_utf8() -> None:
    # A pipe or a C locale must not turn Chinese into an encoding error.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Example:
        >>> main(["demo", "--fixtures", "no-such-folder"])
        2
    """
    _use_utf8()
    try:
        result = application()(args=list(sys.argv[1:] if arguments is None else arguments), standalone_mode=False)
    except KBError as error:
        print(error, file=sys.stderr)
        return error.exit_status
    except typer.Abort:
        return INTERRUPTED
    except typer.Exit as done:
        return int(done.exit_code)
    except BrokenPipeError:
        return 0
    except TyperException as error:
        print(f"usage: {getattr(error, 'format_message', lambda: 'see --help')()}", file=sys.stderr)
        return INPUT
    return result if isinstance(result, int) else 0
