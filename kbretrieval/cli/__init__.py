"""The command line: thin over the API. `kbretrieval …` and `python -m kbretrieval …` are the same.

Exit statuses are those of the one table in `kbretrieval.errors`; every refusal is one line on stderr.
"""

import sys
from collections.abc import Sequence

__all__ = ["main"]

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status.

    Where a package is missing, only `doctor` runs; a command that needs it says so in one line, status 1. An interrupt,
    also while packages are loaded, is status 130.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        from kbretrieval.cli.entry import main as run

        return run(given)
    except ModuleNotFoundError as absent:
        if given[:1] == ["doctor"]:
            from kbretrieval.doctor import main as examine

            return examine(given[1:])
        print(f"the package {absent.name} is missing; run: python -m kbretrieval.doctor", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
