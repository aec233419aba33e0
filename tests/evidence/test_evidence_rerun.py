"""Run again without network and compare byte for byte: EVD-6."""

import json
import os
import shutil
from pathlib import Path

import pytest

import kbretrieval
from kbretrieval.evidence.__main__ import main
from kbretrieval.evidence.canonical import pretty_bytes
from kbretrieval.evidence.errors import RerunRefused
from kbretrieval.evidence.manifest import rebuild_manifest
from kbretrieval.evidence.rerun import command, rerun

# A root with a package of its own: the writer as it is, and one tiny module that makes a claim.
TINY = """
import json, os, socket, sys
from pathlib import Path
from kbretrieval.evidence import Claim

reached = "not tried"
settings = json.loads(Path("settings.json").read_text(encoding="utf-8"))
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
server.close()
for target in (("192.0.2.1", 9), ("kb.example.org", 9)):
    try:
        socket.create_connection(target, timeout=0.2).close()
        reached = "reached"
    except PermissionError as error:
        reached = str(error).partition(":")[0]
    except OSError:
        reached = "no route, but tried"
if settings.get("status"):
    raise SystemExit("engine broken")
argv = ("python", "-m", "kbretrieval.tiny", "{output}")
with Claim("tiny", "一加一。", argv=argv, folder=sys.argv[1], root=".") as claim:
    claim.row(total=settings["total"])
    claim.equal("total", settings["total"], settings.get("expected", settings["total"]))
    claim.observe(pid=os.getpid(), reached=reached)
    if settings.get("skip"):
        claim.skip("vectors", "model_missing")
if settings.get("keep"):
    Path("kept.json").write_bytes(claim.path.read_bytes())
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    source = Path(kbretrieval.__file__).parent
    package = tmp_path / "kbretrieval"
    shutil.copytree(source / "evidence", package / "evidence", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("__init__.py", "_version.py"):
        shutil.copy(source / name, package / name)
    (package / "tiny.py").write_text(TINY, encoding="utf-8", newline="\n")
    put(tmp_path, total=2)
    make(tmp_path)
    return tmp_path


def put(root: Path, **settings: object) -> None:
    (root / "settings.json").write_text(json.dumps(settings), encoding="utf-8", newline="\n")


def make(root: Path) -> None:
    """Run the module as an author would, with a network."""
    import subprocess
    import sys

    environment = {**os.environ, "PYTHONPATH": str(root)}
    subprocess.run(
        [sys.executable, "-m", "kbretrieval.tiny", str(root / "evidence")], cwd=root, env=environment, check=True
    )


def outcomes(root: Path) -> list[tuple[str, str]]:
    return [(finding.outcome, finding.detail) for finding in rerun(root / "evidence", "tiny", root, timeout=120)]


@pytest.mark.promise("EVD-6")
def test_an_equal_run_is_equal_and_offline(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tiny, total=2, keep=True)
    assert outcomes(tiny) == []
    assert json.loads((tiny / "kept.json").read_bytes())["observed"]["reached"] == "network_refused"
    assert main(["verify", str(tiny / "evidence"), "--root", str(tiny), "--rerun", "tiny"]) == 0
    assert "note: rerun: run again, equal byte for byte" in capsys.readouterr().out


@pytest.mark.promise("EVD-6")
def test_a_different_result_fails(tiny: Path) -> None:
    before = (tiny / "evidence" / "tiny.json").read_bytes()
    put(tiny, total=3)
    assert outcomes(tiny) == [("fails", "38 bytes stored, 38 made, different from byte 34")]
    assert main(["verify", str(tiny / "evidence"), "--root", str(tiny), "--rerun", "tiny"]) == 1
    assert (tiny / "evidence" / "tiny.json").read_bytes() == before


@pytest.mark.promise("EVD-6")
@pytest.mark.parametrize(
    ("settings", "outcome", "detail"),
    [
        ({"total": 2, "expected": 3}, "fails", "evidence_check_failed: tiny: total: 2 given, 3 expected"),
        ({"total": 2, "status": True}, "unchecked", "status 1 given, 0 needed: engine broken"),
        ({"total": 2, "skip": True}, "unchecked", "vectors was skipped: model_missing"),
    ],
)
def test_a_run_that_ends_otherwise(tiny: Path, settings: dict, outcome: str, detail: str) -> None:
    put(tiny, **settings)
    found = outcomes(tiny)
    assert [kind for kind, _ in found] == [outcome]
    assert detail in found[0][1]


@pytest.mark.promise("EVD-6")
@pytest.mark.parametrize(
    ("part", "name", "value", "detail"),
    [
        ("claim", "sentence", "一加一等于三。", "the run claims something else: another sentence, chapter or promise"),
        ("claim", "promises", ["ACL-5"], "the run claims something else: another sentence, chapter or promise"),
        ("tests", "passed", ["total", "leaks"], "the run made other checks than the stored file names"),
    ],
)
def test_words_and_checks_that_the_run_does_not_have_fail(
    tiny: Path, part: str, name: str, value: object, detail: str
) -> None:
    path = tiny / "evidence" / "tiny.json"
    document = json.loads(path.read_bytes())
    document[part][name] = value
    path.write_bytes(pretty_bytes(document))
    rebuild_manifest(tiny / "evidence")
    assert outcomes(tiny) == [("fails", detail)]


@pytest.mark.promise("EVD-6")
def test_an_unknown_claim_or_a_broken_file_could_not_be_checked(tiny: Path) -> None:
    assert main(["verify", str(tiny / "evidence"), "--root", str(tiny), "--rerun", "absent"]) == 2
    assert rerun(tiny / "evidence", "absent", tiny)[0].outcome == "unchecked"


@pytest.mark.promise("EVD-6")
@pytest.mark.parametrize(
    "argv",
    [
        ["sh", "-c", "true"],
        ["python", "-c", "pass"],
        ["python", "-m", "http.server"],
        ["python", "-m", "kbretrieval_other"],
        ["python", "-m"],
        ["notebook", "../x.ipynb"],
        ["notebook", "/" + "x.ipynb"],
        ["notebook", "x.py"],
    ],
)
def test_other_commands_are_not_started(argv: list[str], tmp_path: Path) -> None:
    with pytest.raises(RerunRefused):
        command(argv, tmp_path, tmp_path)


NOTEBOOK_CELL = """
from kbretrieval.evidence import Claim
with Claim("cell", "一个单元格。", argv=("notebook", "notebooks/cell.ipynb")) as claim:
    claim.row(total=1 + 1)
    claim.equal("total", 1 + 1, 2)
"""


@pytest.mark.promise("EVD-6")
@pytest.mark.slow
def test_a_notebook_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nbclient", reason="needs the book extra, which brings nbclient and a kernel")
    import nbformat

    (tmp_path / "notebooks").mkdir()
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(NOTEBOOK_CELL)])
    (tmp_path / "notebooks" / "cell.ipynb").write_text(nbformat.writes(notebook), encoding="utf-8", newline="\n")
    monkeypatch.setenv("KBRETRIEVAL_EVIDENCE", str(tmp_path / "evidence"))
    exec(compile(NOTEBOOK_CELL, "cell", "exec"), {})
    assert rerun(tmp_path / "evidence", "cell", tmp_path, timeout=300) == []
