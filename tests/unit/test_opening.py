"""Opening: whose file it is, what is refused, and that a refused file is left as it was (CON-2, CON-4, FLT-15)."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Context, Index
from kbretrieval.store.schema import APPLICATION_ID
from tests.unit.doubles import code_of, docs, error_of, sql

POSIX = os.name == "posix"


def made(path: Path) -> Path:
    with Index.open(path) as index:
        for n in range(30):
            index.upsert("acme", f"d{n}", 1, "markdown", f"# 甲{n}\n\n内容第{n}条", ["alice"])
    return path


def everything(folder: Path) -> dict[str, bytes | None]:
    """Every file of a folder with its bytes."""
    return {item.name: item.read_bytes() if item.is_file() else None for item in sorted(folder.iterdir())}


def foreign(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def _in_wal(path: Path) -> None:
    """A foreign database in WAL mode whose log was never checkpointed: copied while its owner has it open."""
    source = path.with_name("source")
    with closing(sqlite3.connect(source, isolation_level=None)) as owner:
        owner.execute("PRAGMA journal_mode=WAL")
        owner.execute("CREATE TABLE t (n)")
        path.write_bytes(source.read_bytes())
        path.with_name(path.name + "-wal").write_bytes(source.with_name("source-wal").read_bytes())


def _with_hot_journal(path: Path) -> None:
    """A foreign database whose owner died in the middle of a write: opening it for writing would change it."""
    source = path.with_name("source")
    with closing(sqlite3.connect(source, isolation_level=None)) as owner:
        owner.execute("PRAGMA cache_size=1")
        owner.execute("PRAGMA page_size=512")
        owner.execute("CREATE TABLE t (n)")
        owner.execute("BEGIN")
        owner.executemany("INSERT INTO t VALUES (?)", [("x" * 400,)] * 200)
        path.write_bytes(source.read_bytes())
        path.with_name(path.name + "-journal").write_bytes(source.with_name("source-journal").read_bytes())
        owner.execute("ROLLBACK")


OTHERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "text": ("not_an_index", lambda path: path.write_text("no database\n" * 50, encoding="utf-8")),
    "one byte": ("not_an_index", lambda path: path.write_bytes(b"S")),
    "half a header": ("not_an_index", lambda path: path.write_bytes(b"SQLite format 3\x00" + bytes(40))),
    "zeros": ("not_an_index", lambda path: path.write_bytes(bytes(8192))),
    "another database": ("not_an_index", lambda path: foreign(path, "CREATE TABLE t (n)")),
    "another application": (
        "not_an_index",
        lambda path: foreign(path, "CREATE TABLE t (n)", "PRAGMA application_id=7"),
    ),
    "another in WAL": ("not_an_index", _in_wal),
    "another with a hot journal": ("not_an_index", _with_hot_journal),
    "our id without our tables": (
        "index_corrupt",
        lambda path: foreign(path, "CREATE TABLE t (n)", f"PRAGMA application_id={APPLICATION_ID}"),
    ),
    "our id, another contract table": (
        "index_corrupt",
        lambda path: foreign(path, "CREATE TABLE contract (n)", f"PRAGMA application_id={APPLICATION_ID}"),
    ),
    "a folder": ("not_an_index", lambda path: path.mkdir()),
}


@pytest.mark.promise("CON-2", "ERR-2")
@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_index_is_refused_and_left_as_it_was(tmp_path: Path, name: str) -> None:
    code, make = OTHERS[name]
    path = tmp_path / "kb.sqlite"
    make(path)
    before = everything(tmp_path)
    assert code_of(Index.open, path, wait_seconds=0) == code
    assert everything(tmp_path) == before


@pytest.mark.promise("CON-2", "ERR-2")
def test_paths_that_cannot_be_a_file(tmp_path: Path) -> None:
    assert code_of(Index.open, tmp_path / "absent" / "kb.sqlite") == "storage_io_error"
    assert code_of(Index.open, tmp_path / ("x" * 5000)) == "storage_io_error"
    (tmp_path / "file").write_text("x", encoding="utf-8")
    assert code_of(Index.open, tmp_path / "file" / "kb.sqlite") == "storage_io_error"
    odd: list[Any] = ["", "a\x00b", b"bytes", None, 5, "\ud800"]
    assert {code_of(Index.open, path) for path in odd} == {"invalid_path"}
    assert sorted(item.name for item in tmp_path.iterdir()) == ["file"]
    for wait in (-1, float("nan"), True, "1", 1e9):
        assert code_of(Index.open, tmp_path / "kb", wait_seconds=wait) == "invalid_parameter"


@pytest.mark.promise("CON-2", "FLT-7")
def test_a_truncated_index_is_refused_or_whole(tmp_path: Path) -> None:
    """At every length: a typed refusal that changes nothing, or answers that hold."""
    path = made(tmp_path / "kb.sqlite")
    alice, whole = Context("acme", "alice"), path.read_bytes()
    refused = 0
    for size in [1, 15, 16, 71, 72, 99, 100, 511, 512, *range(1024, len(whole), 4096 + 1024), len(whole) - 1]:
        path.write_bytes(whole[:size])

        def use() -> None:
            with Index.open(path, wait_seconds=0) as index:
                answer = index.answer(index.search("内容", alice), alice, limit=10)
                for item in answer.evidence:
                    assert item.quote == f"# 甲{item.doc_id[1:]}\n\n内容第{item.doc_id[1:]}条"

        code = code_of(use)
        assert code in (None, "index_corrupt", "not_an_index")
        refused += code is not None
        assert path.read_bytes() == whole[:size]
    assert refused > 8


@pytest.mark.promise("CON-2")
@pytest.mark.skipif(not POSIX, reason="file modes are a POSIX notion")
def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = made(tmp_path / "kb.sqlite")
    assert path.stat().st_mode & 0o777 == 0o600
    with Index.open(path) as index:
        index.backup(tmp_path / "copy.sqlite")
    assert (tmp_path / "copy.sqlite").stat().st_mode & 0o777 == 0o600


@pytest.mark.promise("CON-2", "CON-4", "CON-5")
def test_the_settings_of_every_connection(index: Index, index_path: Path) -> None:
    def setting(name: str) -> Any:
        return index._engine.connection.run(f"PRAGMA {name}")[0][0]

    assert [setting(name) for name in ("synchronous", "journal_mode", "trusted_schema", "busy_timeout")] == (
        [2, "delete", 0, 0]
    )
    index.upsert("acme", "d", 1, "markdown", "# 甲", ["alice"])
    assert [item.name for item in index_path.parent.iterdir()] == [index_path.name]
    assert sql(index_path, "PRAGMA application_id") == [(APPLICATION_ID,)]


@pytest.mark.promise("CON-4")
def test_a_file_found_in_wal_mode_is_converted(tmp_path: Path, alice: Context) -> None:
    """C059"""
    path = made(tmp_path / "kb.sqlite")
    assert sql(path, "PRAGMA journal_mode=WAL") == [("wal",)]
    with Index.open(path) as index:
        assert sql(path, "PRAGMA journal_mode") == [("delete",)]
        assert len(index.search("内容", alice, limit=100)) == 30
        assert index.status("acme", "d1").sqlite == sqlite3.sqlite_version
    assert [item.name for item in tmp_path.iterdir()] == ["kb.sqlite"]


@pytest.mark.promise("CON-4")
def test_a_file_that_others_keep_in_wal_mode_is_refused(tmp_path: Path) -> None:
    path = made(tmp_path / "kb.sqlite")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode=WAL")
        other.execute("SELECT count(*) FROM documents").fetchall()
        assert code_of(Index.open, path, wait_seconds=0) == "journal_mode_unsafe"
        assert other.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    assert code_of(Index.open, path) is None


TRY_TO_WRITE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None)
try:
    connection.execute("BEGIN IMMEDIATE")
    print("in")
except sqlite3.OperationalError as error:
    print(error.sqlite_errorname)
connection.close()
"""


@pytest.mark.promise("CON-3", "CON-5", "UPD-2")
@pytest.mark.skipif(not POSIX, reason="only POSIX locks end with any descriptor of the file")
def test_opening_a_second_index_does_not_end_the_first_ones_lock(tmp_path: Path) -> None:
    """POSIX drops a process's locks on a file when any descriptor of it is closed: nothing here may open() the file."""
    path = made(tmp_path / "kb.sqlite")

    def another_process() -> str:
        run = subprocess.run(
            [sys.executable, "-c", TRY_TO_WRITE, path], capture_output=True, text=True, encoding="utf-8", check=True
        )
        return run.stdout.strip()

    with Index.open(path) as first, first._engine.connection.write():
        assert another_process() == "SQLITE_BUSY"
        assert code_of(Index.open, path, wait_seconds=0) == "busy"
        assert another_process() == "SQLITE_BUSY"
        path.open("rb").close()  # what a careless look at the header would do
        assert another_process() == "in"


@pytest.mark.promise("FLT-15")
@pytest.mark.skipif(not POSIX, reason="symbolic links need a privilege elsewhere")
def test_a_symbolic_link_leads_to_the_same_index(tmp_path: Path, alice: Context) -> None:
    real = made(tmp_path / "kb.sqlite")
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "kb.sqlite"
    link.symlink_to(real)
    with Index.open(link) as index, Index.open(real) as other:
        index.upsert("acme", "via", 1, "markdown", "# 链接\n\n经由链接写入", ["alice"])
        assert docs(other.search("经由链接", alice)) == ["via"]
    assert [item.name for item in (tmp_path / "links").iterdir()] == ["kb.sqlite"]
    link.unlink()
    link.symlink_to(tmp_path / "nowhere")
    assert code_of(Index.open, link) == "storage_io_error"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.promise("FLT-15", "ERR-2")
@pytest.mark.skipif(not POSIX, reason="a fork with fewer rights is a POSIX notion")
def test_a_file_that_may_only_be_read_answers_and_refuses_writes(open_folder: Path) -> None:
    """Root ignores permissions, so a child without root's rights opens the file; it is left as it was."""
    path = made(open_folder / "kb.sqlite")
    path.chmod(0o444)
    open_folder.chmod(0o555)
    before, alice = path.read_bytes(), Context("acme", "alice")

    def use() -> str:
        told = []
        with Index.open(path, wait_seconds=0) as index:
            told.append(str(len(index.answer(index.search("内容第3条", alice), alice).evidence)))
            told.append(str(code_of(index.upsert, "acme", "x", 1, "markdown", "# 甲", ["alice"])))
            told.append(str(code_of(index.set_acl, "acme", "d1", [], 1)))
            told.append(str(code_of(index.delete, "acme", "d1", 2)))
            told.append(str(code_of(index.purge)))
            told.append(str(code_of(index.check)))
            told.append(index.status("acme", "d1").state)
        told.append(str(code_of(Index.open, path, chunk_size=80)))
        return " ".join(told)

    refused = "index_read_only"
    contract = "index_projection_contract_changed_rebuild_required"
    assert without_rights(use) == f"2 {refused} {refused} {refused} {refused} {refused} live {contract}"
    path.chmod(0o000)
    assert without_rights(lambda: str(code_of(Index.open, path))) == "storage_io_error"
    assert without_rights(lambda: str(code_of(Index.open, open_folder / "new"))) == "storage_io_error"
    path.chmod(0o600)
    assert path.read_bytes() == before


@pytest.fixture
def open_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that every user of the machine can reach: the usual one is for its owner alone."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


def without_rights(call: Callable[[], str]) -> str:
    """Return what a call says in a forked child that has given up root's rights."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child starts no thread
        child = os.fork()
    if child == 0:
        told = "the child failed"
        try:
            if os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            told = call()
        finally:
            os.write(writer, told.encode("utf-8"))
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return told


@pytest.mark.promise("ERR-1", "CON-2")
def test_refusals_of_a_file_name_both_facts(tmp_path: Path) -> None:
    path = foreign(tmp_path / "kb.sqlite", "CREATE TABLE t (n)", "PRAGMA application_id=7")
    refused = error_of(Index.open, path)
    assert refused is not None
    assert str(refused) == f"not_an_index: application id {APPLICATION_ID:#x} is required, 0x7 is there"
    assert str(tmp_path) not in str(refused)


@pytest.mark.promise("CON-2", "FLT-15")
@pytest.mark.parametrize(
    "name", ["a?b=1.sqlite", "a#b.sqlite", "a%20b.sqlite", "a b.sqlite", "知识库.sqlite", ":memory:"]
)
@pytest.mark.skipif(not POSIX, reason="these characters stand in no file name elsewhere")
def test_a_name_is_a_name_and_never_a_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Relative names are taken once: a later change of the working folder leads nowhere else."""
    monkeypatch.chdir(tmp_path)
    with Index.open(name) as index:
        monkeypatch.chdir("/")
        index.upsert("acme", "d", 1, "markdown", "# 甲", ["alice"])
    assert [item.name for item in tmp_path.iterdir()] == [name]
    foreign(tmp_path / f"{name}2", "CREATE TABLE t (n)")
    assert code_of(Index.open, tmp_path / f"{name}2") == "not_an_index"
    assert code_of(Index.open, tmp_path / name) is None
