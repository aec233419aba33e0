"""The command line: one JSON report on standard output, or one line on standard error."""

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn, TextIO

from kbretrieval.offline.dense import MEASURES
from kbretrieval.offline.errors import GateFired, OfflineError, OutputFailed, SettingOutOfRange, UsageError
from kbretrieval.offline.experiment import Settings, run_experiment
from kbretrieval.offline.fixture import load_fixture
from kbretrieval.offline.report import audit_report, public_projection, to_json
from kbretrieval.offline.strict_json import quoted

EXIT_OK = 0
EXIT_REFUSED = 1
EXIT_USAGE = 2
EXIT_GATE = 3
_PROGRAM = "kbretrieval.offline"
_MAX_LITERAL = 9


class _Closed(io.StringIO):
    """Stands for a standard output that was closed before the start, for which Python has no stream at all."""

    def write(self, text: str) -> NoReturn:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # argparse would print its usage too, and repeats arguments unescaped; a refusal is one ASCII line (OFF-61).
        raise UsageError(ascii(message)[1:-1])


def _whole_number(literal: str) -> int:
    if not (literal.isascii() and literal.isdigit() and len(literal) <= _MAX_LITERAL):
        raise SettingOutOfRange(f"{quoted(literal)} given, a whole number of 1 to {_MAX_LITERAL} digits expected")
    return int(literal)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line (OFF-66); numbers stay text until `run_command` reads them.

    Example:
        >>> build_parser().parse_args(["--fixture", "f.json"]).rank_window
        '5'
    """
    defaults = Settings()
    parser = _Parser(prog=f"python -m {_PROGRAM}", description="Run the offline hybrid experiment.", allow_abbrev=False)
    parser.add_argument("--fixture", required=True, help="the JSON fixture")
    parser.add_argument("--top-k", default=str(defaults.top_k), help="k of the metrics")
    parser.add_argument("--rank-window", default=str(defaults.rank_window), help="candidates per channel")
    parser.add_argument("--rrf-constant", default=str(defaults.rrf_constant), help="the constant of RRF")
    parser.add_argument("--metric", default=defaults.metric, help=f"vector measure: {', '.join(MEASURES)}")
    parser.add_argument("--public", action="store_true", help="print the public projection, not the protected audit")
    return parser


def run_command(arguments: Sequence[str], output: TextIO) -> int:
    """Write the report for these arguments and return the exit status: 0, or 3 if the gate fired.

    Raises `OfflineError` for every refusal, without having written anything.

    Example:
        >>> run_command(["--fixture", "no/such/fixture.json"], io.StringIO())
        Traceback (most recent call last):
        kbretrieval.offline.errors.FixtureUnreadable: fixture_unreadable: FileNotFoundError, a readable file expected
    """
    chosen = build_parser().parse_args(arguments)
    settings = Settings(
        top_k=_whole_number(chosen.top_k),
        rank_window=_whole_number(chosen.rank_window),
        rrf_constant=_whole_number(chosen.rrf_constant),
        metric=chosen.metric,
    )
    run = run_experiment(load_fixture(chosen.fixture), settings)
    text = to_json(public_projection(run) if chosen.public else audit_report(run))
    try:
        output.write(text)
        output.flush()
    except OSError as error:
        raise OutputFailed(f"{type(error).__name__} after at most {len(text)} of {len(text)} bytes") from None
    return EXIT_GATE if run.violations else EXIT_OK


def main(arguments: Sequence[str] | None = None, output: TextIO | None = None, errors: TextIO | None = None) -> int:
    """Run the command line and return its exit status; a refusal is one line on `errors` (OFF-61).

    0: report written. 1: fixture or setting refused, or the report could not be written. 2: arguments not
    understood. 3: the gate fired; the audit is written all the same, the public projection is not.

    Example:
        >>> shown = io.StringIO()
        >>> main(["--fixture", "f.json", "--top-k", "0"], io.StringIO(), shown), shown.getvalue()
        (1, 'kbretrieval.offline: setting_out_of_range: top_k 0 given, a whole number from 1 on expected\\n')
    """
    stdout = output or sys.stdout or _Closed()
    stderr = errors or sys.stderr or io.StringIO()
    if isinstance(stdout, io.TextIOWrapper):
        # Windows would write CR LF, and the output would depend on the machine (OFF-63).
        stdout.reconfigure(newline="\n")
    try:
        return run_command(sys.argv[1:] if arguments is None else arguments, stdout)
    except OfflineError as refusal:
        stderr.write(f"{_PROGRAM}: {refusal}\n")
        return _status(refusal, stdout)


def _status(refusal: OfflineError, stdout: TextIO) -> int:
    if isinstance(refusal, OutputFailed) and stdout is sys.stdout:
        # What is still buffered would fail again when the interpreter closes, with a second message.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
    if isinstance(refusal, UsageError):
        return EXIT_USAGE
    return EXIT_GATE if isinstance(refusal, GateFired) else EXIT_REFUSED
