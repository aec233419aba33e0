"""How commands speak: pipes, locales, terminals, interrupts, and one line for everything that does not fit."""

import errno
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kbretrieval import Context, Index
from kbretrieval.cli import entry, main
from kbretrieval.cli.arguments import given_text
from tests.cli.conftest import Run
from tests.unit.doubles import held_open, logical_dump

WHO = ("--tenant", "acme", "--as", "alice")
SECRET = "密码zq7"
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "", "PYTHONCOERCECLOCALE": "0"}
# A default encoding is an error where this package uses one; its dependencies may.
STRICT = (
    *("-X", "warn_default_encoding", "-W", "ignore", "-c"),
    "import sys, warnings\n"
    "warnings.filterwarnings('error', category=EncodingWarning, module='kbretrieval')\n"
    "from kbretrieval.cli import main\n"
    "sys.exit(main(sys.argv[1:]))",
)
MODULE = ("-m", "kbretrieval")
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals, /dev/full and byte arguments are POSIX")


def started(*arguments: object, by: tuple[str, ...] = MODULE, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run `python -m kbretrieval`, or the command in another way, in a process of its own."""
    line = [sys.executable, *by, *map(str, arguments)]
    return subprocess.run(line, env=os.environ | environment, capture_output=True, check=False, timeout=120)


@POSIX
@pytest.mark.promise("FLT-15")
def test_a_c_locale_changes_no_byte(kb: Path, tmp_path: Path) -> None:
    """C069: Chinese in arguments, sources, output and names, where every default encoding is ASCII."""
    source = tmp_path / "new.md"
    source.write_text("# 年假😀\n\n年假五天。", encoding="utf-8", newline="\n")
    new = ("--tenant", "租户", "--doc-id", "制度/年假", "--revision", 1, "--acl", "财务部", "--json")
    asked = ("--index", kb, "--tenant", "租户", "--as", "财务部", "--json")
    added = started("add", source, "--index", kb, *new, by=STRICT, **C_LOCALE)
    assert (added.returncode, added.stderr) == (0, b"")
    assert json.loads(added.stdout)["doc_id"] == "制度/年假"
    for command in ("search", "answer"):
        plain = started(command, "年假", *asked, PYTHONUTF8="1")
        other = started(command, "年假", *asked, by=STRICT, **C_LOCALE)
        assert (other.returncode, other.stderr) == (0, b"")
        assert other.stdout == plain.stdout and b"\r" not in other.stdout
    assert json.loads(other.stdout)["evidence"][0]["quote"] == "# 年假😀\n\n年假五天。"


@POSIX
@pytest.mark.promise("FLT-15", "ERR-2")
def test_a_c_locale_refuses_in_one_line_what_it_cannot_name(tmp_path: Path) -> None:
    refused = started("documents", "--index", tmp_path / "没有.sqlite", "--tenant", "租户", by=STRICT, **C_LOCALE)
    assert (refused.returncode, refused.stdout) == (6, b"")
    assert refused.stderr.startswith(b"index_missing: ") and refused.stderr.count(b"\n") == 1
    program = "from kbretrieval import Index; Index.open('\\u4e2d.sqlite')"
    line = [sys.executable, "-c", program]
    plain = subprocess.run(line, env=os.environ | C_LOCALE, cwd=tmp_path, capture_output=True, check=False)
    assert plain.stderr.rstrip().splitlines()[-1].startswith(b"kbretrieval.errors.inputs.InvalidPath: invalid_path: ")


@POSIX
@pytest.mark.promise("ERR-2")
@pytest.mark.parametrize("option", ["query", "--tenant", "--as", "--group"])
def test_bytes_that_are_no_text_are_refused(kb: Path, option: str) -> None:
    given = {"query": b"q", "--tenant": b"acme", "--as": b"alice", "--group": b"hr"} | {option: b"\xff\xfe"}
    tail = [part for name, value in given.items() if name != "query" for part in (name.encode(), value)]
    line: list[str | bytes] = [
        sys.executable,
        b"-m",
        b"kbretrieval",
        b"search",
        given["query"],
        b"--index",
        os.fsencode(kb),
        *tail,
    ]
    done = subprocess.run(line, capture_output=True, check=False, timeout=120)
    assert done.returncode == 2 and re.fullmatch(rb"(invalid_identity|bounded_query_required): [^\n]+\n", done.stderr)


@pytest.mark.promise("FLT-15")
def test_asserts_switched_off_change_nothing(kb: Path) -> None:
    asked = ("answer", "住宿限额", "--index", kb, *WHO, "--json")
    plain, bare = started(*asked, PYTHONUTF8="1"), started(*asked, by=("-O", *MODULE), PYTHONUTF8="1")
    assert plain.stdout == bare.stdout and json.loads(bare.stdout)["state"] == "extractive"
    refused = started(
        "acl", "--index", kb, "--tenant", "acme", "--doc-id", "travel", "--expected", 9, by=("-O", *MODULE)
    )
    assert refused.returncode == 4 and refused.stderr.startswith(b"stale_acl_revision: ")


@POSIX
@pytest.mark.promise("ERR-2")
@pytest.mark.parametrize("arguments", [("--help",), ("search", "住宿限额", "--json")], ids=["help", "search"])
def test_a_reader_that_goes_away_is_no_error(kb: Path, arguments: tuple[str, ...]) -> None:
    line = [sys.executable, "-m", "kbretrieval", *arguments]
    line += ["--index", str(kb), *WHO] if arguments[0] == "search" else []
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(line, stdout=writing, stderr=subprocess.PIPE, check=False, timeout=120)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
@pytest.mark.promise("ERR-2")
def test_a_full_disk_under_stdout_is_one_line(kb: Path) -> None:
    line = [sys.executable, "-m", "kbretrieval", "documents", "--index", str(kb), "--tenant", "acme"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, check=False, timeout=120)
    assert done.returncode == 6
    assert done.stderr == f"storage_io_error: the system refused a read or a write (errno {errno.ENOSPC})\n".encode()


@pytest.mark.promise("ERR-2")
def test_an_output_that_was_closed_before_the_start_is_one_line(
    run: Run, kb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python has no stream then; `2>&-` takes the line as well, and the status stays."""
    line = ("documents", "--index", kb, "--tenant", "acme")
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stdout", None)
        done = run(*line)
    refusal = f"storage_io_error: the system refused a read or a write (errno {errno.EBADF})\n"
    assert (done.status, done.err) == (6, refusal)
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stdout", None)
        closed.setattr(sys, "stderr", None)
        assert main([str(item) for item in line]) == 6
    with monkeypatch.context() as closed:
        closed.setattr(sys, "stdin", None)
        done = run("audit", "-", "--index", kb, *WHO)
    assert (done.status, done.err) == (2, "invalid_path: a readable file is required, stdin is closed\n")


@POSIX
def test_an_interrupt_is_130_without_a_traceback(kb: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell starts its background jobs without
        "from kbretrieval import Index\n"
        "Index.check = lambda self: os.kill(os.getpid(), signal.SIGINT)\n"
        "from kbretrieval.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    line = [sys.executable, "-c", program, "check", "--index", str(kb)]
    done = subprocess.run(line, capture_output=True, check=False, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_a_package_of_an_extra_that_is_missing_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kbretrieval.book.command", None)
    done = run("notebooks", "run")
    assert (done.status, done.out) == (1, "")
    assert re.fullmatch(r"the package \S+ is missing; run: python -m kbretrieval\.doctor\n", done.err)


@pytest.mark.parametrize("at", ["kbretrieval.cli.entry.application", "kbretrieval.cli.entry._use_utf8"])
def test_an_interrupt_at_any_time_is_130(run: Run, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(at, interrupted)
    assert (run("check").status, run("check").err) == (130, "")


def test_the_module_is_the_command(kb: Path) -> None:
    bare, module = started("--version"), started("documents", "--index", kb, "--tenant", "acme")
    assert re.fullmatch(rb"kbretrieval \d+\.\d+\.\d+\r?\n", bare.stdout) and module.returncode == 0


def test_no_command_at_all_is_the_overview(run: Run) -> None:
    done = run()
    assert (done.status, done.err) == (0, "") and "Commands:" in done.out


@pytest.mark.promise("FLT-10", "ERR-1")
@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        (("search",), "query is required, none given; see kbretrieval search --help"),
        (("documents", "--index", "x", "--tenant", "acme", SECRET), "no further argument is allowed"),
        (("search", f"-{SECRET}"), "a known option is required"),
        (("search", f"--{SECRET}=1"), "a known option is required"),
        (("search", "q", "--limt", "1"), "(near: --limit)"),
        (("search", "q", "--limit", SECRET), "--limit: <int> is required"),
        (("search", "q", "--limit", "9" * 5000), "--limit: <int> is required"),
        (("search", "q", "--mode", SECRET), "--mode: <lexical|vector|hybrid> is required"),
        (("search", "q", "--lexical-share", SECRET), "--lexical-share: <float> is required"),
        (("search", "q", f"--json={SECRET}"), "--json: one value is required, none for a switch"),
        (("search", "q", "--limit"), "--limit: one value is required"),
        ((SECRET,), "one of acl, add, "),
        (("model", SECRET), "one of check, fetch is required"),
        (("model",), "one of check, fetch is required"),
        (("bench", "--size", "3"), "--size: <list[int]>, at least 100 is required"),
        (("bench", "--part", SECRET), "--part: <terms|dense|bge|all> is required"),
        (("search", "q", "--index", "x", "--tenant", "acme"), "--as is required"),
    ],
)
def test_a_command_line_that_does_not_fit(run: Run, arguments: tuple[str, ...], fact: str) -> None:
    done = run(*arguments)
    assert (done.status, done.out) == (2, "")
    assert re.fullmatch(r"invalid_command_line: [^\n]+\n", done.err) and fact in done.err
    assert SECRET not in done.err


@pytest.mark.promise("FLT-10", "ERR-1")
def test_no_refusal_repeats_a_query_or_a_source(run: Run, kb: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(f'{{"{SECRET}": 1}}', encoding="utf-8")
    ask = ("--index", kb, *WHO)
    new = ("--index", kb, "--tenant", "acme", "--doc-id", "d", "--revision", 1)
    before = logical_dump(kb)
    for arguments in (
        ("search", SECRET * 300, *ask),
        ("search", SECRET, *ask, "--limit", 0),
        ("search", SECRET, *ask[:4], "--as", "group:x"),
        ("answer", SECRET, *ask, "--limit", 11),
        ("answer", SECRET, *ask, "--hits", path),
        ("answer", *ask, "--hits", path),
        ("audit", path, *ask),
        ("add", path, *new),
        ("add", path, *new, "--acl", SECRET + "\u202e"),
    ):
        done = run(*arguments)
        assert done.status == 2 and done.out == "" and done.err.count("\n") == 1
        assert SECRET not in done.err
    assert logical_dump(kb) == before


def test_what_a_terminal_would_obey_is_shown_and_not_obeyed(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "kb.sqlite"
    text = "住宿\x1b[2J限额\u202e反转\x9b1m\n第二行"
    with Index.open(path) as index:
        index.upsert("acme", "odd", 1, "text", text, ["alice"])
        assert index.answer(index.search("住宿", Context("acme", "alice")), Context("acme", "alice")).answer == text
    shown = run("answer", "住宿", "--index", path, *WHO).out + run("search", "住宿", "--index", path, *WHO).out
    shown += run("documents", "--index", path, "--tenant", "acme").out
    assert not re.search("[\x1b\x9b\u202e]", shown) and "\\x1b[2J" in shown
    assert json.loads(run("answer", "住宿", "--index", path, *WHO, "--json").out)["answer"] == text


def test_nothing_moves_where_there_is_no_terminal(run: Run, kb: Path) -> None:
    for arguments in (("purge",), ("check",), ("documents", "--tenant", "acme"), ("search", "住宿", *WHO)):
        done = run(*arguments, "--index", kb)
        assert done.status == 0 and done.err == "" and "\r" not in done.out and "\x1b" not in done.out


def test_text_is_read_as_utf_8_whatever_the_locale(monkeypatch: pytest.MonkeyPatch) -> None:
    escaped = "住宿".encode().decode("ascii", "surrogateescape")
    monkeypatch.setattr(os, "fsencode", lambda text: text.encode("ascii", "surrogateescape"))
    assert given_text(escaped) == "住宿"
    assert given_text("住宿") == "住宿", "typed by a program, not by a shell"
    assert given_text("\ud800") == "\ud800"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_stream_that_cannot_write_chinese_is_set_right(monkeypatch: pytest.MonkeyPatch, stream: str) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, stream, io.TextIOWrapper(raw, encoding="ascii", newline="\n"))
    entry._use_utf8()
    print("没有\ud800", file=getattr(sys, stream), flush=True)
    assert raw.getvalue() == "没有\\ud800\n".encode()


@pytest.mark.promise("ERR-2")
def test_a_report_that_another_program_holds_open_stays_and_nothing_is_left_beside_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = tmp_path / "report.json"
    assert run("demo", "--output", report).status == 0
    before = report.read_bytes()
    monkeypatch.setattr(Path, "replace", held_open)
    again = run("demo", "--output", report)
    assert (again.status, again.err) == (6, "storage_io_error: the report cannot be written (errno 13)\n")
    assert report.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["report.json"]
