"""The command line: thin over the API. `kbretrieval …` and `python -m kbretrieval …` are the same.

Exit statuses are those of the one table in `kbretrieval.errors`; every refusal is one line on stderr.
"""

from kbretrieval.cli.entry import main

__all__ = ["main"]
