"""`add`, `delete`, `acl`, `search`, `answer`, `audit` and the upkeep of an index, as commands."""

import json
import os
import re
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import BOOK, Answer, Context, Index, SearchOptions
from kbretrieval.encoders.terms import TermEncoder
from tests.cli.conftest import Run
from tests.unit.doubles import logical_dump, sql

ALICE = Context("acme", "alice")
WHO = ("--tenant", "acme", "--as", "alice")
LINE = re.compile(r"[a-z][a-z0-9_]*: \S[^\n]*\n")


def add_arguments(file: object, kb: Path, **options: object) -> list[object]:
    chosen = {"index": kb, "tenant": "acme", "doc-id": "new", "revision": 1, **options}
    return ["add", file, *(part for name, value in chosen.items() for part in (f"--{name}", value))]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "新制度.md"
    path.write_text("# 年假\n\n员工有5天带薪年假。\n", encoding="utf-8", newline="\n")
    return path


def test_add_makes_the_index_and_prints_what_the_api_returns(run: Run, tmp_path: Path, source: Path) -> None:
    path = tmp_path / "新.sqlite"
    chosen = {"chunk-size": 80, "overlap": 16, "encoder": "terms"}
    done = run(*add_arguments(source, path, **chosen), "--acl", "alice", "--acl", "group:人事", "--json")
    assert (done.status, done.err) == (0, "")
    with Index.open(path) as index:
        found = index.status("acme", "new")
        again = index.upsert("acme", "new", 1, "markdown", source.read_text(encoding="utf-8"), ["alice"])
        assert (index.contract.chunk_size, index.contract.overlap) == (80, 16)
        assert index.contract.encoder == TermEncoder().identifier
    assert (found.acl, found.title, found.format) == (("alice", "group:人事"), "年假", "markdown")
    assert json.loads(done.out) == again.to_dict() | {"state": "indexed"}


def test_add_without_an_acl_is_for_nobody_and_text_says_the_same(run: Run, kb: Path, source: Path) -> None:
    done = run(*add_arguments(source, kb))
    assert done.status == 0
    assert re.search(r"^doc_id +new$", done.out, re.MULTILINE)
    with Index.open(kb) as index:
        assert index.status("acme", "new").acl == ()


def test_add_reads_stdin_as_it_is(run: Run, kb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = "\ufeff# 甲\r\n\r\n乙".encode()
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(raw), encoding="ascii"))
    done = run(*add_arguments("-", kb, format="markdown"), "--json")
    assert done.status == 0
    with Index.open(kb) as index:
        same = index.upsert("acme", "new", 1, "markdown", raw.decode(), [])
    assert same.state == "unchanged" and json.loads(done.out)["sha256"] == same.sha256


@pytest.mark.parametrize(("name", "told"), [("a.MD", "markdown"), ("a.txt", "text"), ("a.json", "json")])
def test_the_format_is_told_by_the_name(run: Run, kb: Path, tmp_path: Path, name: str, told: str) -> None:
    path = tmp_path / name
    path.write_text('{"title": "甲", "sections": []}', encoding="utf-8")
    assert run(*add_arguments(path, kb)).status == 0
    with Index.open(kb) as index:
        assert index.status("acme", "new").format == told


@pytest.mark.promise("DEL-1", "DEL-3")
def test_delete_keeps_old_events_out_until_restored(run: Run, kb: Path, source: Path) -> None:
    where = ("--index", kb, "--tenant", "acme", "--doc-id", "travel")
    assert run("delete", *where, "--revision", 1).err.startswith("delete_requires_new_revision: ")
    done = run("delete", *where, "--revision", 2, "--json")
    assert json.loads(done.out)["state"] == "deleted"
    event = {"doc-id": "travel", "revision": 3}
    refused = run(*add_arguments(source, kb, **event))
    assert (refused.status, refused.out) == (4, "")
    assert refused.err.startswith("deleted_document_requires_explicit_restore: ")
    assert run(*add_arguments(source, kb, **event), "--restore", "--acl", "bob").status == 0
    with Index.open(kb) as index:
        assert index.status("acme", "travel").acl == ("bob",)


@pytest.mark.promise("ACL-3", "ACL-7")
def test_acl_swaps_only_what_was_expected(run: Run, kb: Path) -> None:
    where = ("acl", "--index", kb, "--tenant", "acme", "--doc-id", "travel")
    done = run(*where, "--expected", 1, "--acl", "bob", "--acl", "group:hr", "--json")
    assert json.loads(done.out)["acl_revision"] == 2
    again = run(*where, "--expected", 1)
    assert (again.status, again.out, again.err) == (4, "", "stale_acl_revision: ACL revision 1 given, 2 stored\n")
    assert run(*where, "--expected", 2).status == 0
    with Index.open(kb) as index:
        assert index.status("acme", "travel").acl == ()


@pytest.mark.parametrize(
    ("given", "limit", "mode", "options"),
    [
        ((), 5, "hybrid", SearchOptions()),
        (("--lexical", "fts5", "--rerank", "title"), 5, "hybrid", BOOK),
        (("--mode", "lexical", "--limit", 1), 1, "lexical", SearchOptions()),
        (
            ("--fusion", "convex", "--lexical-share", 0.5),
            5,
            "hybrid",
            SearchOptions(fusion="convex", lexical_share=0.5),
        ),
        (("--rrf-k", 1, "--window", 2), 5, "hybrid", SearchOptions(rrf_k=1, window=2)),
    ],
)
def test_search_is_the_api_s(
    run: Run, kb: Path, given: tuple[object, ...], limit: int, mode: Any, options: SearchOptions
) -> None:
    done = run("search", "住宿限额 午餐", "--index", kb, *WHO, *given, "--json")
    assert (done.status, done.err) == (0, "")
    with Index.open(kb) as index:
        assert json.loads(done.out) == index.search("住宿限额 午餐", ALICE, limit, mode, options).to_dict()


def test_the_table_shows_ranks_of_both_channels_and_the_trace(run: Run, kb: Path) -> None:
    done = run("search", "住宿限额", "--index", kb, *WHO)
    head, first, *rest = done.out.splitlines()
    assert head.split() == ["#", "document", "revision", "code", "points", "lexical", "vector", "fused", "text"]
    with Index.open(kb) as index:
        hit = index.search("住宿限额", ALICE)[0]
    assert first.split()[:4] == ["1", "travel", "1", f"{hit.start}-{hit.end}"]
    assert f"1 ({hit.channels[0].score:.4f})" in first and f"1 ({hit.channels[1].score:.4f})" in first
    assert first.index(first.split()[-2]) > 0 and "住宿每晚限额" in first
    assert [line.split(":")[0] for line in rest if ":" in line] == ["lexical", "vector"]
    assert "2 eligible" in rest[-1]
    assert run("search", "住宿限额", "--index", kb, "--tenant", "beta", "--as", "alice").out.startswith("no hits\n")


@pytest.mark.promise("ACL-2", "CIT-6")
def test_groups_come_from_the_command_line(run: Run, kb: Path) -> None:
    asked = ("answer", "住宿限额", "--index", kb, "--tenant", "acme", "--as", "carol", "--json")
    assert json.loads(run(*asked).out)["state"] == "abstain"
    given = json.loads(run(*asked, "--group", "it", "--group", "hr").out)
    assert [item["granted_by"] for item in given["evidence"]] == ["group:hr"]


@pytest.mark.promise("CIT-1", "CIT-4")
def test_answer_quotes_with_lines_coordinates_and_grant_or_abstains(run: Run, kb: Path) -> None:
    asked = ("answer", "住宿限额", "--index", kb, *WHO)
    done = run(*asked, "--json")
    with Index.open(kb) as index:
        answer: Answer = index.answer(index.search("住宿限额", ALICE), ALICE)
    assert json.loads(done.out) == answer.to_dict() and answer.state == "extractive"
    shown = run(*asked).out
    assert shown.startswith(
        "[1] travel, revision 1, lines 1-3, code points 0-17, granted by alice\n    # 差旅\n\n    住宿"
    )
    silent = run("answer", "住宿限额", "--index", kb, "--tenant", "acme", "--as", "nobody")
    assert (silent.status, silent.out, silent.err) == (0, "没有当前权限下可核查的证据。\n", "")


@pytest.mark.promise("CIT-1", "CIT-5", "ACL-4")
def test_kept_hits_are_judged_again(run: Run, kb: Path, tmp_path: Path) -> None:
    kept = tmp_path / "hits.json"
    kept.write_text(run("search", "住宿限额", "--index", kb, *WHO, "--json").out, encoding="utf-8")
    asked = ("answer", "--hits", kept, "--index", kb, *WHO, "--json")
    assert json.loads(run(*asked).out)["state"] == "extractive"
    judged = run("audit", kept, "--index", kb, *WHO, "--json")
    assert [item["verdict"] for item in json.loads(judged.out)] == ["valid"]
    run("acl", "--index", kb, "--tenant", "acme", "--doc-id", "travel", "--expected", 1, "--acl", "bob")
    assert json.loads(run(*asked).out)["state"] == "abstain"
    hits = json.loads(kept.read_text(encoding="utf-8"))["hits"]
    kept.write_text(json.dumps([*hits, {"odd": 1}]), encoding="utf-8")
    shown = run("audit", kept, "--index", kb, *WHO).out.splitlines()
    assert "access withdrawn" in shown[1] and "malformed" in shown[2]


def test_the_maintenance_views(run: Run, kb: Path) -> None:
    one = run("status", "--index", kb, "--tenant", "acme", "--doc-id", "gone", "--json")
    many = run("documents", "--index", kb, "--tenant", "acme", "--json")
    with Index.open(kb) as index:
        assert json.loads(one.out) == index.status("acme", "gone").to_dict()
        assert json.loads(many.out) == [item.to_dict() for item in index.documents("acme")]
    shown = run("documents", "--index", kb, "--tenant", "acme").out.splitlines()
    assert [line.split()[:2] for line in shown[1:]] == [["gone", "deleted"], ["notice", "live"], ["travel", "live"]]
    assert re.search(
        r"^state +deleted$", run("status", "--index", kb, "--tenant", "acme", "--doc-id", "gone").out, re.M
    )


@pytest.mark.promise("OBS-2")
@pytest.mark.parametrize("mending", [("repair",), ("check", "--repair-derived")], ids=" ".join)
def test_check_names_each_fault_and_repair_mends_it(run: Run, kb: Path, mending: tuple[str, ...]) -> None:
    assert run("check", "--index", kb).out == "no fault found\n"
    table = sql(kb, "SELECT name FROM sqlite_master WHERE sql LIKE '%USING fts5%'")[0][0]
    sql(kb, f"DELETE FROM {table} WHERE rowid = (SELECT max(rowid) FROM {table})")
    done = run("check", "--index", kb, "--json")
    assert (done.status, done.err) == (6, "index_corrupt: no fault is allowed, 1 found\n")
    assert [item["schema"] for item in json.loads(done.out)] == ["kbretrieval.fault/1"]
    assert json.loads(done.out)[0]["code"] in run("check", "--index", kb).out
    assert run(*mending, "--index", kb).out.endswith("1 faults before, 0 left\n")
    assert run("check", "--index", kb).status == 0


@pytest.mark.promise("DEL-5")
def test_purge_takes_the_bytes_of_deleted_text_away(run: Run, kb: Path) -> None:
    done = run("purge", "--index", kb, "--json")
    assert json.loads(done.out)["titles_blanked"] == 1
    assert "旧的住宿限额".encode() not in kb.read_bytes()


@pytest.mark.promise("CON-7")
def test_a_restored_backup_revives_what_was_revoked_and_its_help_says_so(run: Run, kb: Path, tmp_path: Path) -> None:
    copy = tmp_path / "backup.sqlite"
    assert run("backup", copy, "--index", kb).status == 0
    assert logical_dump(copy) == logical_dump(kb)
    run("acl", "--index", kb, "--tenant", "acme", "--doc-id", "travel", "--expected", 1)
    run("delete", "--index", kb, "--tenant", "acme", "--doc-id", "notice", "--revision", 4)
    for query in ("住宿限额", "午餐"):
        asked = (query, *WHO, "--json", "--index")
        assert json.loads(run("answer", *asked, kb).out)["state"] == "abstain"
        assert json.loads(run("answer", *asked, copy).out)["state"] == "extractive"
    said = " ".join(run("backup", "--help").out.split())
    assert "revives rights that were revoked and documents that were deleted" in said
    before = copy.read_bytes()
    again = run("backup", copy, "--index", kb)
    assert (again.status, again.err) == (2, "invalid_path: a new file is required, one exists\n")
    assert copy.read_bytes() == before


WHERE = ("--tenant", "acme")
READING: list[tuple[object, ...]] = [
    ("delete", *WHERE, "--doc-id", "d", "--revision", 1),
    ("acl", *WHERE, "--doc-id", "d", "--expected", 1),
    ("search", "q", *WHO),
    ("answer", "q", *WHO),
    ("status", *WHERE, "--doc-id", "d"),
    ("documents", *WHERE),
    *((name,) for name in ("check", "repair", "purge")),
    ("backup", os.devnull),
]


@pytest.mark.promise("ERR-1")
@pytest.mark.parametrize("arguments", READING, ids=lambda given: str(given[0]))
@pytest.mark.parametrize("there", [None, b""], ids=["absent", "empty"])
def test_a_command_that_makes_no_index_makes_no_file(
    run: Run, tmp_path: Path, arguments: tuple[object, ...], there: bytes | None
) -> None:
    path = tmp_path / "mistyped.sqlite"
    if there is not None:
        path.write_bytes(there)
    before = sorted(tmp_path.iterdir())
    done = run(*arguments, "--index", path)
    assert (done.status, done.out) == (6, "")
    assert done.err.startswith("index_missing: ") and LINE.fullmatch(done.err)
    assert sorted(tmp_path.iterdir()) == before and (there is None or path.read_bytes() == there)


def test_audit_needs_an_index_too(run: Run, tmp_path: Path) -> None:
    (tmp_path / "hits.json").write_text("[]", encoding="utf-8")
    done = run("audit", tmp_path / "hits.json", "--index", tmp_path / "none", *WHO)
    assert done.status == 6 and not (tmp_path / "none").exists()


@pytest.mark.parametrize("command", ["demo", "evaluate"])
def test_evidence_is_of_the_book_s_fixtures_alone(run: Run, tmp_path: Path, root: Path, command: str) -> None:
    """A claim names `fixtures/…` as its subjects; over a reader's own documents it would speak of files not read."""
    folder = tmp_path / "evidence"
    done = run(command, "--fixtures", root / "fixtures", "--evidence", folder)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("invalid_parameter: one of --fixtures and --evidence is allowed, 2 given")
    assert not folder.exists()
    absent = run(command, "--fixtures", tmp_path / "none", "--evidence", folder)
    assert absent.err == done.err, "refused before anything is read"


@pytest.mark.promise("OBS-2", "OBS-4", "MIG-1")
@pytest.mark.parametrize("command", ["check", "repair", "purge", "stats", "migrate"])
def test_a_command_for_a_whole_index_takes_its_file_in_either_form(run: Run, kb: Path, command: str) -> None:
    plain, named = run(command, kb, "--json"), run(command, "--index", kb, "--json")
    assert (plain.status, plain.err) == (named.status, named.err) == (0, "")
    assert json.loads(plain.out) is not None and plain.out.splitlines()[:2] == named.out.splitlines()[:2]
    for arguments, count in (((), 0), ((kb, "--index", kb), 2)):
        refused = run(command, *arguments)
        assert (refused.status, refused.out) == (2, "")
        assert (
            refused.err.startswith("invalid_command_line: one index file is required")
            and f"{count} given" in refused.err
        )


@pytest.mark.promise("ERR-1", "CON-1")
def test_a_contract_that_speaks_to_a_terminal_is_shown_and_not_obeyed(run: Run, kb: Path, source: Path) -> None:
    sql(kb, "UPDATE contract SET value = ? WHERE name = 'encoder'", "red\x1b[31m\nbusy: no")
    refused = run(*add_arguments(source, kb, encoder="terms"))
    assert refused.status == 4 and LINE.fullmatch(refused.err) and r"red\x1b[31m busy: no stored" in refused.err


@pytest.mark.promise("CON-1", "PRJ-6")
@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"tenant": "*"}, "invalid_identity"),
        ({"doc-id": ""}, "invalid_identity"),
        ({"revision": 0}, "positive_revision_required"),
        ({"acl": "group:"}, "explicit_acl_list_required"),
        ({"format": "json"}, "invalid_json"),
    ],
)
def test_an_event_that_is_refused_makes_no_index(
    run: Run, tmp_path: Path, source: Path, wrong: dict[str, object], code: str
) -> None:
    path = tmp_path / "new.sqlite"
    done = run(*add_arguments(source, path, **wrong))
    assert (done.status, done.err.partition(":")[0]) == (2, code) and not path.exists()
