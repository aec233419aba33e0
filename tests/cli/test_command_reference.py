"""docs/commands.md and README's table against the commands themselves, and every help page."""

import re
from pathlib import Path
from typing import Any

import pytest

from kbretrieval.cli.entry import PROGRAM
from kbretrieval.errors import code_table
from tests.cli.conftest import Run
from tools import commands

ALL = dict(commands.commands())
ROOT = Path(__file__).resolve().parents[2]


def table_of_readme(text: str) -> str:
    """The rows of README's table of commands."""
    return text.partition("## 命令\n")[2].partition("\n## ")[0]


def missing_commands(text: str) -> list[str]:
    """Commands that no cell of a table names."""
    cells = " ".join(re.findall(r"`([^`]+)`", text))
    names = [name.removeprefix(PROGRAM).strip() for name in ALL]
    return [name for name in names if name and not re.search(rf"(?<![-\w]){re.escape(name)}(?![-\w])", cells)]


def missing_parameters(page: str, name: str, command: Any) -> list[str]:
    """Arguments and options of a command that its section of the page does not list."""
    section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    listed = {row.split(" | ")[0] for row in section.replace("\\|", "¦").splitlines()}
    names = [what for what, _, _ in commands.parameters(command)]
    return [what for what in names if f"| `{what.replace('|', '¦')}`" not in listed]


def test_the_page_is_up_to_date() -> None:
    assert commands.PAGE.read_text(encoding="utf-8") == commands.render(), "run: python tools/commands.py"


@pytest.mark.parametrize("name", ALL)
def test_every_option_is_on_the_page(name: str) -> None:
    page = commands.PAGE.read_text(encoding="utf-8")
    assert missing_parameters(page, name, ALL[name]) == []


def test_every_command_is_in_the_table_of_readme() -> None:
    assert missing_commands(table_of_readme((ROOT / "README.md").read_text(encoding="utf-8"))) == []


def test_what_is_missing_is_found() -> None:
    page = commands.PAGE.read_text(encoding="utf-8")
    name = "kbretrieval search"
    assert missing_parameters(page.replace("--rrf-k", "--rrf"), name, ALL[name]) == ["--rrf-k <int>"]
    table = table_of_readme((ROOT / "README.md").read_text(encoding="utf-8"))
    assert missing_commands(table.replace("purge", "purging")) == ["purge"]


@pytest.mark.promise("ERR-1")
def test_the_page_lists_every_code_with_its_class_and_exit_status() -> None:
    page = commands.PAGE.read_text(encoding="utf-8")
    rows = {f"| `{row.code}` | `{row.name}` | {row.exit_status} |" for row in code_table()}
    assert {row for row in rows if row not in page} == set()
    table = page.partition("## Exit statuses")[2]
    statuses = {int(number) for number in re.findall(r"^\| (\d+) \| ", table, re.MULTILINE)}
    assert {row.exit_status for row in code_table()} < statuses


@pytest.mark.parametrize("name", ALL)
def test_every_command_has_help_with_an_example(run: Run, name: str) -> None:
    words = name.split()[1:]
    done = run(*words, "--help")
    assert (done.status, done.err) == (0, "")
    if words:
        assert f"Example: {PROGRAM} {words[0]}" in " ".join(done.out.split())


@pytest.mark.parametrize("name", [name for name in ALL if name != PROGRAM])
def test_every_example_is_a_command_line_that_fits(name: str) -> None:
    """Parsed, not run: an example with an unknown option or without a required one is worse than none."""
    example = " ".join((ALL[name].help or "").partition("Example:")[2].split()).split()
    words = name.split()
    assert example[: len(words)] == words
    ALL[name].make_context(name, example[len(words) :])
