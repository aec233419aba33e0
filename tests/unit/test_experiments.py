"""`demo`, `evaluate` and `manifest`: equal to the book's outputs, and no report where the engine breaks its word."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import copyfile
from typing import Any

import pytest

from kbretrieval import Context, Index, citation, lifecycle
from kbretrieval.cli import main
from kbretrieval.errors import AccessViolation, ClaimFailed, FixtureHashMismatch, InvalidFixture
from kbretrieval.evaluation import claims
from kbretrieval.evaluation.corpus import BOOK_WINDOW, Corpus, fixtures_folder, load_corpus, write_manifest
from kbretrieval.evaluation.demo import run_demo
from kbretrieval.evaluation.report import check_access
from kbretrieval.evidence import verify_folder
from kbretrieval.model.files import FOLDER_VARIABLE
from kbretrieval.results import Answer
from kbretrieval.store.connection import Connection
from kbretrieval.store.documents import acl_of

FILES = ("corpus.json", "queries.json", "manifest.json")
OBSERVED = {"wall_ms", "python", "sqlite"}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return a command's exit status, its output and its one line of error."""
    status = main(arguments)
    captured = capsys.readouterr()
    return status, captured.out, captured.err.strip()


def compared(value: Any) -> Any:
    """Return a report without what differs between machines and runs."""
    if isinstance(value, dict):
        return {name: compared(item) for name, item in value.items() if name not in OBSERVED}
    return [compared(item) for item in value] if isinstance(value, list) else value


def keys_of(value: Any) -> Any:
    """Return the keys of a report in their order, all the way down."""
    if isinstance(value, dict):
        return [(name, keys_of(item)) for name, item in value.items()]
    return [keys_of(item) for item in value if isinstance(item, dict)] if isinstance(value, list) else None


def expected(shared: Path, name: str) -> Any:
    """Return an output of the book."""
    return json.loads((shared / "book" / "expected" / name).read_text(encoding="utf-8"))


@pytest.fixture
def own_fixtures(tmp_path: Path) -> Path:
    """A copy of the book's fixtures that a test may change."""
    folder = tmp_path / "own"
    folder.mkdir()
    for name in FILES:
        copyfile(fixtures_folder() / name, folder / name)
    return folder


@contextmanager
def empty(folder: Path) -> Iterator[Index]:
    """Open an empty index with the book's window."""
    with Index.open(folder / "kb.sqlite", None, *BOOK_WINDOW) as index:
        yield index


def test_demo_gives_every_field_of_the_book(shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "demo.json"
    assert run(capsys, "demo", "--output", str(target)) == (0, "", "")
    made, book = json.loads(target.read_text(encoding="utf-8")), expected(shared, "demo.json")
    assert made == book
    assert keys_of(made) == keys_of(book)
    assert run(capsys, "demo")[1] == target.read_text(encoding="utf-8")


def test_terms_give_every_field_of_the_book(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "evaluate", "--encoder", "terms")
    made, book = json.loads(out), expected(shared, "term-evaluation.json")
    assert status == 0 and compared(made) == compared(book)
    assert keys_of(made) == keys_of(book)
    assert all(row["wall_ms"] >= 0 for report in made["reports"] for row in report["rows"])


@pytest.mark.model
def test_bge_gives_the_relevant_ranks_and_metrics_of_the_book(
    shared: Path, model_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(model_folder))
    status, out, _ = run(capsys, "evaluate", "--encoder", "bge")
    made, book = json.loads(out), expected(shared, "bge-evaluation.json")
    assert status == 0 and keys_of(made) == keys_of(book)
    # The tail beside the floor and the versions of the runtime depend on the machine.
    for mine, theirs in zip(made["reports"], book["reports"], strict=True):
        assert {k: v for k, v in mine.items() if k != "rows"} == {k: v for k, v in theirs.items() if k != "rows"}
        ranks, theirs_ranks = (
            [(row["id"], row["query"], row["relevant"], row["first_relevant_rank"]) for row in report["rows"]]
            for report in (mine, theirs)
        )
        assert ranks == theirs_ranks
    fixed = {name: value for name, value in book["metadata"].items() if name != "runtime"}
    assert {name: value for name, value in made["metadata"].items() if name != "runtime"} == fixed


def trusting(connection: Connection, hits: Any, context: Context, limit: int, tell: Any) -> Answer:
    """Quote what the hit brings along where the store gives nothing."""
    made = ANSWER(connection, hits, context, limit)
    return made if made.evidence or not hits else Answer("extractive", hits[0].text, ())


def renumbering(connection: Connection, doc_key: int) -> None:
    """Make room for the new chunks and leave the old ones findable."""
    connection.run("UPDATE chunks SET number = number + 100 WHERE doc_key = ?", (doc_key,))


def careless(stored: Any, event: Any) -> str:
    """Decide without a look at the revision."""
    return "create" if stored is None else "replace" if stored.live else "restore"


def first_list_only(connection: Connection, doc_key: int, acl: tuple[str, ...]) -> None:
    """Never replace a list."""
    if not acl_of(connection, doc_key):
        WRITE_ACL(connection, doc_key, acl)


def emptied_later(connection: Connection, doc_key: int, acl: tuple[str, ...]) -> None:
    """Replace a list by nobody."""
    WRITE_ACL(connection, doc_key, () if acl_of(connection, doc_key) else acl)


def open_to_all(connection: Connection, doc_key: int, acl: tuple[str, ...]) -> None:
    """Let everyone of the tenant read a new document."""
    WRITE_ACL(connection, doc_key, acl if acl_of(connection, doc_key) else (*acl, "*"))


def anybody(context: Context) -> tuple[str, ...]:
    """Let a search take everybody for everybody of the tenant, where it ranks and where it reads."""
    return ("*", "alice", "bob", "carol", "dave", *(f"group:{name}" for name in ("hr", "finance", "board")))


ANSWER, WRITE_ACL = citation.answer, lifecycle.write_acl
BROKEN: list[tuple[Any, str, Any, str]] = [
    (citation, "answer", trusting, "stale citation rejected"),
    (lifecycle, "delete_chunks", renumbering, "old fact not found"),
    (lifecycle, "decide_content", careless, "replay"),
    (lifecycle, "write_acl", first_list_only, "revoked citation rejected"),
    (lifecycle, "write_acl", emptied_later, "bob keeps access"),
    (lifecycle, "write_acl", open_to_all, "private, foreign and unrelated queries find nothing"),
    (Context, "entries", anybody, "revoked citation rejected"),
]


@pytest.mark.promise("EVD-7")
@pytest.mark.parametrize(("room", "name", "fault", "claim"), BROKEN, ids=[row[2].__name__ for row in BROKEN])
def test_a_broken_engine_gives_no_report_and_no_evidence(
    room: Any,
    name: str,
    fault: Any,
    claim: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output, evidence = tmp_path / "demo.json", tmp_path / "evidence"
    monkeypatch.setattr(room, name, fault)
    status, out, err = run(capsys, "demo", "--output", str(output), "--evidence", str(evidence))
    assert (status, out) == (ClaimFailed.exit_status, "")
    assert err.startswith(f"claim_failed: {claim}: ") and "\n" not in err
    assert not output.exists() and not evidence.exists()


def test_a_report_of_an_earlier_run_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "demo.json"
    output.write_text("older", encoding="utf-8", newline="\n")
    monkeypatch.setattr(lifecycle, "write_acl", first_list_only)
    assert run(capsys, "demo", "--output", str(output))[0] == ClaimFailed.exit_status
    assert output.read_text(encoding="utf-8") == "older" and list(tmp_path.iterdir()) == [output]


@pytest.mark.promise("ACL-5", "EVD-7")
def test_an_access_violation_ends_the_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output, evidence = tmp_path / "evaluation.json", tmp_path / "evidence"
    monkeypatch.setattr(Context, "entries", anybody)
    status, out, err = run(capsys, "evaluate", "--output", str(output), "--evidence", str(evidence))
    assert (status, out) == (AccessViolation.exit_status, "")
    assert err.startswith("access_violation: ") and "SECRET" not in err
    assert not output.exists() and not evidence.exists()


def test_the_oracle_of_access_is_the_fixture_and_not_the_engine(tmp_path: Path) -> None:
    corpus, bob = load_corpus(), Context("acme", "bob")
    with empty(tmp_path) as index:
        corpus.fill(index)
        hits = index.search("SECRET-ACME-BOB", bob, 10)
    assert [hit.doc_id for hit in hits] == ["board"]
    check_access(corpus, hits, bob)
    with pytest.raises(AccessViolation, match="1 hits returned, 1 of documents"):
        check_access(corpus, hits, Context("acme", "alice"))


def source_of(doc_id: str, source: str) -> dict[str, Any]:
    """Return a corpus entry that Alice may read."""
    made: dict[str, Any] = {"tenant": "acme", "doc_id": doc_id, "revision": 1}
    return made | {"format": "markdown", "acl": ["alice"], "source": source}


@pytest.mark.promise("RRK-1", "RRK-2")
def test_rerank_off_is_reported_and_changes_the_order_it_names(
    own_fixtures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The title of the first names the query, its only chunk says little; the second says it in one short sentence.
    documents = [
        source_of("named", "# 午餐补贴\n\n" + "本页说明流程、窗口与联系人，请逐项阅读后再提交申请。" * 2),
        source_of("said", "# 通知\n\n午餐补贴，午餐补贴。"),
    ]
    queries = [{"id": "q1", "query": "午餐补贴", "relevant": ["said"]}]
    for name, value in (("corpus.json", documents), ("queries.json", queries)):
        (own_fixtures / name).write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8", newline="\n")
    write_manifest(own_fixtures)
    made = {}
    for switch in ("on", "off"):
        status, out, _ = run(capsys, "evaluate", "--rerank", switch, "--fixtures", str(own_fixtures))
        assert status == 0
        made[switch] = [(r["rerank"], r["rows"][0]["top3_documents"]) for r in json.loads(out)["reports"]]
    assert made["on"] == [(True, ["named", "said"])] * 3
    assert made["off"] == [(False, ["said", "named"])] * 3
    assert run(capsys, "evaluate", "--rerank", "maybe")[0] == 2


@pytest.mark.promise("EVD-4", "EVD-7")
def test_both_settings_leave_evidence_that_verifies(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "evidence"
    for arguments in (("demo",), ("evaluate",), ("evaluate", "--rerank", "off")):
        assert run(capsys, *arguments, "--evidence", str(folder))[0] == 0
    names = {path.name for path in folder.glob("*.json")}
    assert names == {
        "MANIFEST.json",
        "book-demo.json",
        "book-terms-evaluation.json",
        "book-terms-evaluation-without-rerank.json",
    }
    assert verify_folder(folder, root).exit_code == 0


def test_manifest_vouches_for_own_documents_and_demo_runs_on_them(
    own_fixtures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = own_fixtures / "corpus.json"
    corpus.write_bytes(corpus.read_bytes().replace("500元".encode(), "600元".encode()))
    status, out, err = run(capsys, "demo", "--fixtures", str(own_fixtures))
    assert (status, out) == (FixtureHashMismatch.exit_status, "")
    assert re.fullmatch(r"fixture_hash_mismatch: corpus\.json: \w{12} in the manifest, \w{12} in the file", err)

    status, out, _ = run(capsys, "manifest", str(own_fixtures), "--version", "mine-v2")
    written = json.loads((own_fixtures / "manifest.json").read_text(encoding="utf-8"))
    assert status == 0 and json.loads(out) == written
    assert (written["version"], written["documents"], written["queries"]) == ("mine-v2", 8, 13)
    assert (written["positive_queries"], written["negative_queries"]) == (10, 3)

    status, out, _ = run(capsys, "demo", "--fixtures", str(own_fixtures))
    assert status == 0 and "600元" in json.loads(out)["initial_answer"]["answer"]
    assert load_corpus(own_fixtures).sha256 == written["sha256"] != load_corpus().sha256


@pytest.mark.parametrize("name", ["corpus.json", "queries.json"])
def test_each_changed_byte_of_the_fixtures_is_refused(own_fixtures: Path, name: str) -> None:
    raw = (own_fixtures / name).read_bytes()
    for at in range(0, len(raw), 97):
        (own_fixtures / name).write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        with pytest.raises(FixtureHashMismatch, match=re.escape(name)):
            load_corpus(own_fixtures)
    (own_fixtures / name).write_bytes(raw)
    assert load_corpus(own_fixtures) == load_corpus()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("corpus.json", "{"),
        ("corpus.json", "{}"),
        ("corpus.json", '[{"tenant": "acme"}]'),
        ("queries.json", '[{"id": "q1", "query": "x", "relevant": [], "extra": 1}]'),
    ],
)
def test_manifest_vouches_for_nothing_that_cannot_be_loaded(
    own_fixtures: Path, name: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (own_fixtures / "manifest.json").read_bytes()
    (own_fixtures / name).write_text(text, encoding="utf-8", newline="\n")
    status, out, err = run(capsys, "manifest", str(own_fixtures))
    assert (status, out) == (InvalidFixture.exit_status, "") and err.startswith(f"invalid_fixture: {name}")
    assert (own_fixtures / "manifest.json").read_bytes() == before


def test_an_absent_folder_or_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "manifest", str(tmp_path / "none"))[2].startswith("invalid_parameter: ")
    for command in ("demo", "evaluate"):
        status, out, err = run(capsys, command, "--fixtures", str(tmp_path))
        assert (status, out) == (2, "") and err.startswith("invalid_fixture: manifest.json is required")


def test_the_order_of_arrival_does_not_show_in_the_report(tmp_path: Path) -> None:
    corpus = load_corpus()
    turned: Corpus = replace(corpus, documents=corpus.documents[::-1])
    made = []
    for number, given in enumerate((corpus, turned)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with empty(folder) as index:
            made.append(run_demo(index, given))
    assert made[0] == made[1]


def test_evidence_is_not_written_where_a_claim_is_false(tmp_path: Path) -> None:
    corpus = load_corpus()
    with empty(tmp_path) as index:
        report = run_demo(index, corpus)
    report["stale_replay_error"] = "nothing"
    with pytest.raises(Exception, match="evidence_check_failed"):
        claims.demo_claim(report, corpus, tmp_path / "evidence")
    assert not (tmp_path / "evidence" / "book-demo.json").exists()
