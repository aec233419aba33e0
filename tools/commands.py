"""Write docs/commands.md from the commands themselves and from the table of refusals.

python tools/commands.py           write the page
python tools/commands.py --check   compare only; exit status 1 if it is not up to date
"""

import argparse
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from kbretrieval.cli.entry import PROGRAM, application
from kbretrieval.errors import code_table
from kbretrieval.evidence.errors import EvidenceError

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "commands.md"

HEAD = """# Commands

Generated from the commands and from `kbretrieval.errors` by `python tools/commands.py`; do not edit.

`kbretrieval …` and `python -m kbretrieval …` are the same. Results go to stdout, UTF-8 whatever the locale; `--json`
prints what the API's `to_dict()` returns. A refusal is one line on stderr, `code: facts`, and its exit status is in the
table at the end; it never repeats a query, a source or what was typed. Progress is shown on a terminal only.

`add` and `sync` make an index where there is none. Every other command refuses a file that is missing or empty with
`index_missing`, and makes no file; so does nothing that only reads (an empty file is a log for `stats`). The command
line believes whoever runs it: `--as` and `--group` are the identity that trusted code would have established, so these
commands are for maintainers.
"""

STATUSES = """
## Exit statuses

| exit status | meaning |
|---|---|
| 0 | done; an abstention is an answer, and a reader that closes the pipe early has had enough |
| 1 | the command's own check did not hold (`verify`, `model`, `doctor`, `notebooks`) |
| 2 | the input was refused before any work; `verify`: something could not be checked |
| 3 | a run ended with some items refused, the others done |
| 4 | the stored state does not allow it, or a claim is false |
| 5 | no trusted context |
| 6 | the store: missing, busy, full, damaged, closed, not ours |
| 7 | the encoder or its model |
| 130 | interrupted |
"""


def commands() -> Iterator[tuple[str, Any]]:
    """Every command by its full name, in the order of the overview."""
    root: Any = typer.main.get_command(application())
    yield PROGRAM, root
    for name, command in root.commands.items():
        inner = getattr(command, "commands", None)
        if inner is None:
            yield f"{PROGRAM} {name}", command
        else:
            yield from ((f"{PROGRAM} {name} {part}", item) for part, item in inner.items())


def parameters(command: Any) -> list[tuple[str, str, str]]:
    """Name and form, default, and meaning of every argument and option."""
    context = typer.Context(command)
    return [(_name(item, context), _default(item), (item.help or "").strip()) for item in command.params]


def _name(item: Any, context: Any) -> str:
    if item.param_type_name == "argument":
        return f"{item.name}{'…' if item.nargs == -1 else ''}"
    form = "" if item.is_flag else f" {item.metavar or item.display_type(context)}"
    return f"{max(item.opts, key=len)}{form}"


def _default(item: Any) -> str:
    if item.required:
        return "required"
    shown = getattr(item.default, "value", item.default)
    return "" if shown is None or item.is_flag else str(shown)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _quoted(default: str) -> str:
    return default if default in ("", "required") else f"`{_cell(default)}`"


def _section(name: str, command: Any) -> list[str]:
    said, _, example = inspect.cleandoc(command.help or "").partition("Example:")
    lines = ["", f"## {name}", "", said.strip()]
    if example:
        lines += ["", "```", " ".join(example.split()), "```"]
    rows = parameters(command)
    if rows:
        lines += ["", "| parameter | default | meaning |", "|---|---|---|"]
        lines += [f"| `{_cell(what)}` | {_quoted(default)} | {_cell(meaning)} |" for what, default, meaning in rows]
    return lines


def _refusals() -> list[str]:
    lines = ["", "## Refusals", "", "| code | class | exit status | meaning |", "|---|---|---|---|"]
    lines += [f"| `{row.code}` | `{row.name}` | {row.exit_status} | {_cell(row.meaning)} |" for row in code_table()]
    lines += ["", "The evidence room has its own, exit status 4 where a command writes evidence:", ""]
    lines += ["| code | class | meaning |", "|---|---|---|"]
    found = EvidenceError.__subclasses__()
    rows = sorted(
        (item.code, item.__name__, item.__doc__ or "") for item in found if item.__module__ == EvidenceError.__module__
    )
    return lines + [f"| `{code}` | `{name}` | {_cell(said)} |" for code, name, said in rows]


def render() -> str:
    """The text of docs/commands.md."""
    lines = [HEAD.rstrip()]
    for name, command in commands():
        lines += _section(name, command)
    return "\n".join([*lines, STATUSES.rstrip(), *_refusals()]) + "\n"


def main() -> int:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description="write docs/commands.md")
    parser.add_argument("--check", action="store_true", help="compare only")
    if parser.parse_args().check:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != render())
    PAGE.write_text(render(), encoding="utf-8", newline="\n")
    print(f"{PAGE.relative_to(ROOT).as_posix()} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
