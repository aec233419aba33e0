"""The runner itself, on small notebooks: what a clean run looks like, and each way in which one can go wrong."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from kbretrieval.book.checks import Witnessed, check_run
from kbretrieval.book.command import main
from kbretrieval.book.errors import NotebooksMissing
from kbretrieval.book.lints import lint, lint_text
from kbretrieval.book.loopback import NetworkRefused, is_loopback, refuse_beyond_loopback
from kbretrieval.book.normalise import differences, pictures
from kbretrieval.book.runner import NotebookRun, run_notebooks, write_committed
from kbretrieval.book.solutions import TAG, exercise_cells

Build = Callable[..., Path]


def outputs_of(run: NotebookRun) -> list[list[str]]:
    """Return the text of every code cell's outputs."""
    cells = [cell for cell in run.notebook.cells if cell.cell_type == "code"]
    return [[o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs] for cell in cells]


def test_a_clean_notebook_is_clean(tiny_runs: tuple[NotebookRun, NotebookRun]) -> None:
    run = tiny_runs[0]
    assert run.ok, run.report()
    assert run.report() == ""
    assert lint(run.notebook) == []
    assert lint_text(run.output.read_text(encoding="utf-8"), run.notebook) == []


@pytest.mark.promise("NB-3")
def test_the_figure_arrives_with_its_words_and_its_table(tiny_runs: tuple[NotebookRun, NotebookRun]) -> None:
    figure, caption, table = tiny_runs[0].notebook.cells[3].outputs
    picture = pictures(figure)[0]
    assert (
        picture.alt == figure.data["text/plain"] == "堆叠条形图。横轴：融合分数；纵轴：结果。结论：两个通道各出一半。"
    )
    assert picture.width > 600 and picture.height > 200
    assert set(caption.data) == set(table.data) == {"text/markdown", "text/plain"}
    assert "| travel#0 | 0.01639344262295082 |" in table.data["text/markdown"]


@pytest.mark.promise("NB-13")
def test_seed_folder_and_solution_change_only_the_exercise(tiny_runs: tuple[NotebookRun, NotebookRun]) -> None:
    plain, solved = tiny_runs
    assert solved.ok, solved.report()
    assert differences(plain.notebook, solved.notebook, pixels=True, without=TAG) == []
    assert {difference.cell for difference in differences(plain.notebook, solved.notebook, pixels=True)} == {8}


def test_the_stub_fails_and_the_solution_passes(tiny_runs: tuple[NotebookRun, NotebookRun]) -> None:
    said = [exercise_cells(run.notebook)[0].outputs[0].text for run in tiny_runs]
    assert said == ["✗ 练习 1：分母是 60 加名次。\n", "✓ 练习 1\n"]


@pytest.mark.promise("NB-11")
def test_each_silent_fault_is_found(build: Build, tmp_path: Path) -> None:
    path = build(
        tmp_path / "01_faults.ipynb",
        "class Broken:\n    def _repr_html_(self):\n        raise ValueError('drawn')\n\n\ndisplay(Broken())",
        "import threading\n\nworker = threading.Thread(target=lambda: 1 / 0)\nworker.start()\nworker.join()",
        "%%capture\nraise KeyError('hidden')",
        f'!{sys.executable} -c "raise SystemExit(3)"',
        "import warnings\n\nwarnings.warn('old')",
        "print('Traceback (most recent call last):')",
        "class Lost:\n    def __del__(self):\n        raise OSError\n\n\nlost = Lost()\ndel lost",
        "listing = !echo 1",
    )
    run = run_notebooks([path], tmp_path / "out")[0]
    assert run.failure is None and not run.ok
    found = {(fault.cell, fault.code) for fault in run.faults}
    wanted = {
        (2, "hidden_exception"),
        (2, "error_output"),
        (4, "thread_exception"),
        (6, "hidden_exception"),
        (8, "command_failed"),
        (10, "stderr_output"),
        (12, "traceback_text"),
        (14, "unraisable_exception"),
        (16, "command_unverifiable"),
    }
    assert wanted <= found, run.report()
    assert "cell 8: command_failed: exit status 3" in run.report()


@pytest.mark.promise("NB-11")
def test_an_execution_gap_and_a_silent_witness_are_found(tiny_runs: tuple[NotebookRun, NotebookRun]) -> None:
    notebook = nbformat.from_dict(json.loads(json.dumps(tiny_runs[0].notebook)))
    ready = [Witnessed("ready", 1, f"guarded {sys.executable}")]
    assert check_run(notebook, ready, sys.executable) == []
    assert [fault.code for fault in check_run(notebook, [], sys.executable)] == ["kernel_not_guarded"]
    other = [Witnessed("ready", 1, "guarded another-python")]
    assert [fault.code for fault in check_run(notebook, other, sys.executable)] == ["kernel_not_guarded"]
    notebook.cells[3].execution_count = 5
    assert [(f.cell, f.code) for f in check_run(notebook, ready, sys.executable)] == [(4, "execution_gap")]


@pytest.mark.alone
@pytest.mark.promise("NB-12")
def test_the_three_ways_to_stop_are_told_apart(build: Build, tmp_path: Path) -> None:
    raising = build(tmp_path / "01_raising.ipynb", "print('kept')", "a = 1\nb = 2\nc = 3\nraise LookupError('gone')")
    # No cell alone is too slow: the limit is the notebook's.
    slow = build(tmp_path / "02_slow.ipynb", "import time\n\ntime.sleep(3)", "time.sleep(3)", "time.sleep(3)")
    dying = build(tmp_path / "03_dying.ipynb", "import os\n\nos._exit(7)")
    runs = run_notebooks([raising, slow, dying], tmp_path / "out", wall_limit=4)
    assert [run.failure.code for run in runs if run.failure] == ["cell_execution_error", "cell_timeout", "dead_kernel"]
    assert runs[0].report().splitlines() == [
        "chapter 01, cell 4: cell_execution_error",
        "    a = 1",
        "    b = 2",
        "    c = 3",
        "LookupError: gone",
    ]
    assert runs[1].report().endswith("4 seconds allowed for the notebook")
    kept = nbformat.read(runs[0].output, as_version=4)
    assert kept.cells[1].outputs[0].text == "kept\n" and kept.cells[3].outputs[0].ename == "LookupError"
    before = raising.read_bytes()
    assert write_committed(runs) == [] and raising.read_bytes() == before


@pytest.mark.promise("NB-14")
def test_the_kernel_is_this_interpreter_and_sees_no_network(build: Build, tmp_path: Path) -> None:
    reach = "import socket\n\ntry:\n    {}\nexcept OSError as error:\n    print(error)"
    child = "import socket; socket.create_connection(('192.0.2.1', 80), 1)"
    path = build(
        tmp_path / "01_network.ipynb",
        "import os, sys\n\nprint(os.path.realpath(sys.executable))\nprint(os.environ['PYTHONHASHSEED'])",
        reach.format("socket.create_connection(('192.0.2.1', 80), timeout=1)"),
        reach.format("socket.getaddrinfo('example.org', 80)"),
        reach.format("socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))"),
        "import subprocess\n\n"
        f"done = subprocess.run([sys.executable, '-c', {child!r}], capture_output=True, text=True)\n"
        "print(done.stderr.strip().splitlines()[-1].split(': ')[1:])",
        "with socket.create_server(('127.0.0.1', 0)) as server:\n"
        "    socket.create_connection(server.getsockname()).close()\nprint('loopback')",
    )
    run = run_notebooks([path], tmp_path / "out", hash_seed="11")[0]
    refused = "network_refused: only loopback is allowed, {} given\n"
    texts = ["".join(texts) for texts in outputs_of(run)]
    assert run.failure is None, run.report()
    assert texts[0] == f"{os.path.realpath(sys.executable)}\n11\n"
    assert texts[1] == texts[3] == refused.format("192.0.2.1")
    assert texts[2] == refused.format("example.org")
    assert "network_refused" in texts[4] and texts[5] == "loopback\n"


@pytest.mark.promise("NB-14")
def test_local_sockets_are_not_refused() -> None:
    refuse_beyond_loopback("socket.connect", (None, "a-path"))
    refuse_beyond_loopback("socket.connect", (None, ("::1", 1, 0, 0)))
    refuse_beyond_loopback("open", ("example.org",))
    assert is_loopback(b"localhost") and not is_loopback("fe80::1%eth0")
    with pytest.raises(NetworkRefused, match=r"network_refused: only loopback is allowed, 192\.0\.2\.7 given"):
        refuse_beyond_loopback("socket.sendmsg", (None, ("192.0.2.7", 9)))


def test_absent_notebooks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotebooksMissing, match="0 notebooks asked for"):
        run_notebooks([], tmp_path)
    with pytest.raises(NotebooksMissing, match=r"absent: 09_none\.ipynb"):
        run_notebooks([tmp_path / "09_none.ipynb"], tmp_path)


def test_the_command_writes_the_committed_form_once(
    build: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = build(tmp_path / "01_small.ipynb", "print('好')")
    arguments = ["1", "--notebooks", str(tmp_path), "--output", str(tmp_path / "out"), "--write"]
    assert main(arguments) == 0
    written = path.read_bytes()
    assert written == (tmp_path / "out" / "01_small.ipynb").read_bytes() and b"\r" not in written
    assert main(arguments) == 0
    assert path.read_bytes() == written
    assert [line for line in capsys.readouterr().out.splitlines() if "written" in line] == [
        "1 of 1 files written",
        "0 of 1 files written",
    ]


@pytest.mark.promise("NB-12")
def test_a_cell_that_stops_says_what_it_compared(build: Build, tmp_path: Path) -> None:
    cell = "rows = ['travel', 'leave']\nassert rows[0] == 'leave', rows"
    refused = "from kbretrieval import Context\nContext('acme', '*')"
    start = "from kbretrieval import book\nbook.start(chapter=7)"
    paths = [build(tmp_path / f"0{at}_stops.ipynb", start, source) for at, source in enumerate((cell, refused), 7)]
    runs = run_notebooks(paths, tmp_path / "out")
    shown = ["".join(run.notebook.cells[3].outputs[0].traceback) for run in runs]
    assert "rows[0] → 'travel'" in shown[0] and "参数" in shown[0]
    assert shown[1].startswith("invalid_identity: ") and "第 2 行：Context('acme', '*')" in shown[1]
    assert all(run.failure is not None and "Traceback" not in text for run, text in zip(runs, shown, strict=True))
