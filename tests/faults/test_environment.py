"""FLT-15: other locales, asserts switched off, warnings as errors, files that may only be read, a clone from Windows.

A second thread, a forked child, a closed index, a symbolic link and a read-only file under the API are in
tests/unit/test_threads.py and tests/unit/test_opening.py; the command line under a C locale in tests/cli.
"""

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kbretrieval.evaluation.corpus import load_corpus
from kbretrieval.evidence.verify import verify_folder

ROOT = Path(__file__).resolve().parents[2]
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "", "PYTHONCOERCECLOCALE": "0"}
UTF8 = {"PYTHONUTF8": "1"}
# A default encoding is an error where this package uses one; its dependencies may.
STRICT = "import warnings\nwarnings.filterwarnings('error', category=EncodingWarning, module='kbretrieval')\n"
WARN = ("-X", "warn_default_encoding", "-W", "ignore")
PROGRAM = r"""
import json, pathlib, sys
from kbretrieval import Context, Index, KBError, Provenance
from kbretrieval.evidence import Claim
folder = pathlib.Path(sys.argv[1])
asker = Context("租户", "财务部", ("人事",))
told = []
with Index.open(folder / "kb.sqlite") as index:
    source = "---\ntitle: 假期\n---\n# 年假😀\n\n年假五天。"
    made = index.upsert("租户", "制度/年假", 1, "markdown", source, ["财务部"], provenance=Provenance(uri="文件:年假"))
    told.append(made.to_dict())
    for mode in ("lexical", "vector", "hybrid"):
        for lexical in ("isolated", "fts5"):
            hits = index.search("年假", asker, mode=mode, lexical=lexical)
            told += [hits.to_dict(), index.answer(hits, asker).to_dict()]
    told.append(index.set_acl("租户", "制度/年假", ["group:人事"], 1).to_dict())
    told += [item.to_dict() for item in index.audit(hits, asker)]
    told.append(index.answer(index.search("年假", asker), asker).to_dict())
    for call in (
        lambda: index.set_acl("租户", "制度/年假", [], 1),
        lambda: index.upsert("租户", "制度/年假", 1, "json", "{", ["财务部"]),
        lambda: index.search("年假", None),
        lambda: index.delete("租户", "制度/年假", 1),
    ):
        try:
            told.append(str(call()))
        except KBError as error:
            told.append(str(error))
    told.append(index.delete("租户", "制度/年假", 2).to_dict())
    told += [item.to_dict() for item in index.documents("租户")]
    told.append([fault.to_dict() for fault in index.check()])
    index.backup(folder / "copy.sqlite")
text = json.dumps(told, ensure_ascii=False, indent=1)
(folder / "told.json").write_text(text, encoding="utf-8", newline="\n")
"""


def running(folder: Path, program: str, *arguments: object, flags: tuple[str, ...] = (), **environment: str) -> str:
    """Run a program in a process of its own, from a file in `folder`; it must end well and in silence."""
    path = folder / "program.py"  # an argument of the interpreter could hold no Chinese in a C locale
    path.write_text(program, encoding="utf-8", newline="\n")
    line = [sys.executable, *flags, str(path), *map(str, arguments)]
    done = subprocess.run(line, env=os.environ | environment, capture_output=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr.decode("utf-8", "replace")[-2000:]
    return done.stdout.decode("utf-8")


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What the program tells where nothing is odd."""
    folder = tmp_path_factory.mktemp("usual")
    running(folder, PROGRAM, folder, PYTHONUTF8="1")
    return (folder / "told.json").read_bytes()


@pytest.mark.promise("FLT-15", "ERR-2")
@pytest.mark.parametrize(
    ("flags", "environment"),
    [(WARN, C_LOCALE), (("-O",), UTF8), (("-OO", *WARN), C_LOCALE)],
    ids=["c-locale", "asserts-off", "docstrings-off"],
)
def test_nothing_depends_on_locale_or_asserts(
    tmp_path: Path, usual: bytes, flags: tuple[str, ...], environment: dict[str, str]
) -> None:
    """C069, the API's side: the same bytes, Chinese in every place that takes text."""
    running(tmp_path, STRICT + PROGRAM, tmp_path, flags=flags, **environment)
    told = (tmp_path / "told.json").read_bytes()
    assert told == usual and b"\r" not in told
    quoted = [item for item in json.loads(told) if isinstance(item, dict) and item.get("state") == "extractive"]
    assert quoted[0]["evidence"][0]["quote"].endswith("# 年假😀\n\n年假五天。")


@pytest.mark.promise("FLT-15", "EVD-4")
def test_experiment_and_evidence_in_a_c_locale(tmp_path: Path) -> None:
    call = STRICT + "import sys\nfrom kbretrieval.cli import main\nsys.exit(main(sys.argv[1:]))"
    told = {}
    for name, flags, environment in (("c", WARN, C_LOCALE), ("utf8", (), UTF8)):
        report, evidence = tmp_path / f"{name}.json", tmp_path / name
        running(tmp_path, call, "demo", "--output", report, "--evidence", evidence, flags=flags, **environment)
        written = json.loads((evidence / "book-demo.json").read_bytes())
        told[name] = report.read_bytes(), written["claim"], written["deterministic"]
        assert verify_folder(evidence, ROOT).exit_code == 0
    assert told["c"] == told["utf8"]
    assert "住宿" in told["c"][0].decode("utf-8") and b"\r" not in told["c"][0]


@pytest.mark.promise("FLT-15")
def test_a_warning_of_the_package_would_be_seen(tmp_path: Path) -> None:
    """The filter bites: the same flags, and a module of that name that opens a file in the default encoding."""
    careless = "exec('open(sys.argv[0])', {'__name__': 'kbretrieval.x', 'sys': sys})"
    with pytest.raises(AssertionError, match="EncodingWarning"):
        running(tmp_path, f"import sys\n{STRICT}{careless}", flags=WARN)


def test_no_decision_hangs_on_an_assert() -> None:
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{node.lineno}"
        for path in sorted((ROOT / "kbretrieval").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert)
    ]
    assert found == []


def cloned(folder: Path, attributes: str = "") -> Path:
    """A clone as Git for Windows makes it by default, of the files whose digests are written down somewhere."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("a clone needs git and a checkout that has its history; an unpacked archive has none")
    clone = folder / "clone"

    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], check=True, capture_output=True, timeout=120)

    git("clone", "--quiet", "--no-checkout", "--config", "core.autocrlf=true", str(ROOT), str(clone))
    (clone / ".git" / "info" / "attributes").write_text(attributes, encoding="utf-8", newline="\n")
    git("-C", str(clone), "checkout", "--quiet", "HEAD", "--", ".gitattributes", *KEPT)
    return clone


KEPT = ("fixtures", "evidence", "notebooks", "kbretrieval/errors", "README.md")


def changed(clone: Path) -> list[str]:
    """Files of a clone whose bytes are not the committed ones."""
    line = ["git", "-C", str(clone), "ls-tree", "-r", "-z", "HEAD", "--", *KEPT]
    listing = subprocess.run(line, capture_output=True, check=True, encoding="utf-8").stdout
    rows = [row.split("\t") for row in listing.split("\0") if row]
    assert len(rows) > 20, "the listing is too short to be true"
    return [name for facts, name in rows if _blob((clone / name).read_bytes()) != facts.split()[2]]


def _blob(raw: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(raw) + raw).hexdigest()  # Git's own name of a file's content


@pytest.mark.promise("FLT-15")
def test_a_clone_with_autocrlf_changes_no_byte(tmp_path: Path) -> None:
    clone = cloned(tmp_path)
    assert changed(clone) == []
    assert load_corpus(clone / "fixtures").sha256 == load_corpus().sha256


@pytest.mark.promise("FLT-15")
def test_a_clone_without_our_attributes_would_be_seen(tmp_path: Path) -> None:
    """The clone's own attributes go before the committed ones: as if .gitattributes did not protect these files."""
    clone = cloned(tmp_path, "fixtures/** text eol=crlf\n")
    assert "fixtures/corpus.json" in changed(clone)
    with pytest.raises(ValueError, match="fixture_hash_mismatch"):
        load_corpus(clone / "fixtures")
