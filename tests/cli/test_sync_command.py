"""`kbretrieval sync`: what it prints, its exit statuses, new and existing indexes, terminals (SYN-2…SYN-10, POL-1)."""

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Context, Index, SearchOptions
from kbretrieval.encoders.bge import IDENTIFIER, BGEEncoder
from kbretrieval.encoders.terms import TermEncoder
from kbretrieval.model.files import FOLDER_VARIABLE
from kbretrieval.sync.defaults import OWN_DOCUMENTS, search_options
from tests.cli.conftest import Ran, Run
from tests.unit.doubles import Table, logical_dump

RULES = """
version: 1
rules:
  - match: "policies/**"
    allow: ["*"]
  - match: "projects/**"
    allow: ["group:alpha", "carol"]
"""


class Desk:
    """A folder, an ACL file and an index that is not there yet."""

    def __init__(self, folder: Path) -> None:
        self.docs, self.acl, self.index = folder / "docs", folder / "acl.yml", folder / "kb.sqlite"
        self.put("policies/差旅.md", "# 差旅\n\n住宿每晚限额500元。")
        self.put("projects/计划.txt", "甲计划\n预算一百万。")
        self.acl.write_text(RULES, encoding="utf-8", newline="\n")

    def put(self, name: str, text: str | bytes) -> None:
        """Write a file of the folder."""
        path = self.docs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))

    def line(self, *more: object) -> list[object]:
        """The command line."""
        return ["sync", self.docs, "--index", self.index, "--tenant", "acme", "--acl", self.acl, *more]

    def states(self) -> dict[str, str]:
        """State of every document."""
        with Index.open(self.index) as index:
            return {status.doc_id: status.state for status in index.documents("acme")}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


TERMS = ("--encoder", "terms")


def made(done: Ran) -> dict[str, Any]:
    """The report of a run with --json."""
    value: dict[str, Any] = json.loads(done.out)
    return value


def sums(done: Ran) -> dict[str, int]:
    """The last table of a report, without its zeros."""
    rows = (line.rsplit(None, 1) for line in done.out.rpartition("documents and files")[2].splitlines()[1:])
    return {name: int(count) for name, count in rows if count != "0"}


@pytest.mark.promise("SYN-1", "SYN-9", "SYN-10")
def test_a_folder_becomes_an_index_that_can_be_searched(run: Run, desk: Desk) -> None:
    done = run(*desk.line(*TERMS))
    assert (done.status, done.err) == (0, "")
    assert sums(done) == {"create (done)": 2, "chunks encoded": 2}
    found = run("answer", "住宿限额", "--index", desk.index, "--tenant", "acme", "--as", "alice")
    assert "policies/差旅.md" in found.out and "granted by *" in found.out
    hidden = run("answer", "预算", "--index", desk.index, "--tenant", "acme", "--as", "alice")
    assert "预算一百万" not in hidden.out
    shown = run("answer", "预算", "--index", desk.index, "--tenant", "acme", "--as", "dora", "--group", "alpha")
    assert "预算一百万" in shown.out
    with Index.open(desk.index) as index:
        contract = index.contract
    assert (contract.encoder, contract.chunk_size, contract.overlap) == (TermEncoder().identifier, 220, 40)


@pytest.mark.promise("SYN-3")
def test_a_second_run_writes_nothing(run: Run, desk: Desk) -> None:
    run(*desk.line(*TERMS))
    before = logical_dump(desk.index)
    done = run(*desk.line("--json"))
    assert (done.status, made(done)["steps"], made(done)["unchanged"]) == (0, [], 2)
    assert logical_dump(desk.index) == before


@pytest.mark.promise("SYN-8", "POL-4")
def test_a_dry_run_prints_what_the_run_does_and_makes_nothing(run: Run, desk: Desk) -> None:
    names = sorted(desk.docs.parent.rglob("*"))
    foreseen = run(*desk.line(*TERMS, "--dry-run", "--json"))
    assert sorted(desk.docs.parent.rglob("*")) == names
    table = run(*desk.line(*TERMS, "--dry-run")).out
    rows = {" ".join(line.split()) for line in table.splitlines()}
    assert "step state document file revision ACL revision gains loses" in rows
    assert "create planned projects/计划.txt projects/计划.txt 1 1 group:alpha, carol -" in rows
    done = run(*desk.line(*TERMS, "--json"))
    plan, report = made(foreseen), made(done)
    assert [step | {"state": "done"} for step in plan["steps"]] == report["steps"]
    for name in set(plan) - {"steps", "dry_run", "chunks"}:
        assert plan[name] == report[name]


@pytest.mark.promise("POL-4", "POL-3")
def test_a_dry_run_says_who_gains_and_who_loses(run: Run, desk: Desk) -> None:
    run(*desk.line(*TERMS))
    desk.acl.write_text("{version: 1, rules: [{match: projects/, allow: [carol, dora]}]}", encoding="utf-8")
    before = logical_dump(desk.index)
    steps = made(run(*desk.line("--dry-run", "--json")))["steps"]
    assert [(step["kind"], step["doc_id"], step["gains"], step["losses"]) for step in steps] == [
        ("tighten", "policies/差旅.md", [], ["*"]),
        ("tighten", "projects/计划.txt", [], ["group:alpha"]),
        ("loosen", "projects/计划.txt", ["dora"], []),
    ]
    assert logical_dump(desk.index) == before


@pytest.mark.promise("SYN-5", "SYN-2")
def test_a_bad_file_is_named_and_the_status_is_3(run: Run, desk: Desk) -> None:
    desk.put("旧.txt", "年假".encode("gb18030"))
    desk.put("图.pdf", b"%PDF")
    done = run(*desk.line(*TERMS))
    assert (done.status, done.err) == (3, "some_items_refused: no item may be refused, 1 were; the others are done\n")
    assert "unsupported_encoding" in done.out and "图.pdf" in done.out
    assert sums(done) == {"create (done)": 2, "chunks encoded": 2, "refused": 1, "skipped": 1}
    assert run(*desk.line("--dry-run")).status == 3
    done = run(*desk.line("--encoding", "旧.txt=gb18030", "--json"))
    assert (done.status, [step["doc_id"] for step in made(done)["steps"]]) == (0, ["旧.txt"])


@pytest.mark.promise("SYN-4")
def test_a_run_that_would_delete_too_much_says_how_to_go_on(run: Run, desk: Desk) -> None:
    for number in range(5):
        desk.put(f"policies/{number}.md", "# 旧")
    run(*desk.line(*TERMS))
    for number in range(5):
        (desk.docs / f"policies/{number}.md").unlink()
    done = run(*desk.line())
    assert (done.status, done.out) == (4, "")
    assert done.err.startswith("deletions_need_confirmation: 5 of 7 ")
    assert set(desk.states().values()) == {"live"}
    foreseen = run(*desk.line("--dry-run"))
    assert (foreseen.status, foreseen.err, sums(foreseen)) == (4, done.err, {"stopped": 5, "unchanged": 2})
    option = done.err.rpartition(": ")[2].split()
    assert run(*desk.line(*option)).status == 0
    assert list(desk.states().values()).count("deleted") == 5


@pytest.mark.promise("SYN-4")
def test_a_root_that_is_missing_or_empty_changes_nothing_and_makes_nothing(run: Run, desk: Desk) -> None:
    (desk.docs.parent / "empty").mkdir()
    for root in ("absent", "empty", "acl.yml", ""):
        line = desk.line(*TERMS)
        line[1] = desk.docs.parent / root if root else ""
        done = run(*line)
        assert (done.status, done.out) == (2, "")
        assert done.err.startswith("source_listing_incomplete: ") and not desk.index.exists()


@pytest.mark.promise("SYN-4", "SYN-10")
@pytest.mark.parametrize("wrong", [("--tenant", ""), ("--connector", "*"), ("--restore", "none.md")])
def test_what_is_refused_makes_no_index(run: Run, desk: Desk, wrong: tuple[str, str]) -> None:
    """Its contract would be there, and the next run would take it for the reader's choice."""
    done = run(*desk.line(*TERMS, *wrong))
    assert (done.status, done.out) == (2, "") and not desk.index.exists()


@pytest.mark.promise("SYN-6")
def test_a_file_that_comes_back_needs_restore(run: Run, desk: Desk) -> None:
    run(*desk.line(*TERMS))
    text = (desk.docs / "projects/计划.txt").read_bytes()
    (desk.docs / "projects/计划.txt").unlink()
    assert run(*desk.line()).status == 0
    desk.put("projects/计划.txt", text)
    done = run(*desk.line())
    assert done.status == 3 and "deleted_document_requires_explicit_restore" in done.out
    assert run(*desk.line("--restore", "projects/没有.txt")).err.startswith("invalid_parameter: restore: ")
    assert run(*desk.line("--restore", os.path.join("projects", "计划.txt"))).status == 0  # noqa: PTH118 - as it is typed
    assert run(*desk.line("--restore-all")).status == 0
    assert desk.states() == {"policies/差旅.md": "live", "projects/计划.txt": "live"}


@pytest.mark.promise("POL-1")
def test_a_faulty_acl_file_changes_nothing(run: Run, desk: Desk) -> None:
    run(*desk.line(*TERMS))
    before = logical_dump(desk.index)
    desk.put("policies/新.md", "# 新")
    desk.acl.write_text(RULES + "    deny: [bob]\n", encoding="utf-8")
    done = run(*desk.line())
    assert (done.status, done.out) == (2, "")
    assert done.err == "invalid_policy: line 8, column 5: one of match, allow is required, another key given\n"
    desk.acl.unlink()
    assert run(*desk.line()).err.startswith("invalid_path: ")
    assert logical_dump(desk.index) == before


@pytest.mark.promise("SYN-10")
def test_without_the_model_a_new_index_is_not_begun(
    run: Run, desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "no model here"))
    for more in ((), ("--dry-run",)):
        done = run(*desk.line(*more))
        assert (done.status, done.out, desk.index.exists()) == (7, "", False)
        assert done.err.startswith("model_missing: ") and done.err.count("\n") == 1
        assert "kbretrieval model fetch" in done.err and "--encoder terms" in done.err


@pytest.mark.promise("SYN-10")
def test_an_existing_index_brings_its_own_contract(run: Run, desk: Desk) -> None:
    Index.open(desk.index, TermEncoder(), 80, 16).close()
    assert run(*desk.line()).status == 0
    with Index.open(desk.index) as index:
        assert (index.contract.chunk_size, index.contract.overlap) == (80, 16)
        assert search_options(index.contract) == SearchOptions()


@pytest.mark.promise("SYN-10", "POL-3")
def test_without_its_encoder_an_index_still_takes_rights_away(run: Run, desk: Desk) -> None:
    with Index.open(desk.index, Table("another encoder")):
        pass
    assert run(*desk.line()).err.startswith("encoder_unavailable: ")
    with Index.open(desk.index, Table("another encoder")) as index:
        index.upsert("acme", "policies/差旅.md", 1, "markdown", "# 旧", ["alice"])
    line = desk.line()
    line[line.index(desk.acl)] = desk.docs.parent / "nobody.yml"
    (desk.docs.parent / "nobody.yml").write_text("version: 1", encoding="utf-8")
    done = run(*line)
    assert (done.status, done.err.partition(":")[0]) == (7, "encoder_unavailable")
    with Index.open(desk.index) as index:
        assert index.status("acme", "policies/差旅.md").acl == ()


@pytest.mark.model
@pytest.mark.promise("SYN-10", "QUA-2")
def test_a_new_index_uses_the_model_and_its_fusion(run: Run, desk: Desk, model_folder: Path) -> None:
    assert run(*desk.line()).status == 0
    with Index.open(desk.index) as index:
        contract = index.contract
    assert (contract.encoder, contract.chunk_size, contract.overlap) == (IDENTIFIER, 220, 40)
    asked = ("search", "酒店花费上限", "--index", desk.index, "--tenant", "acme", "--as", "alice", "--json")
    with Index.open(desk.index, BGEEncoder(model_folder)) as index:
        expected = index.search("酒店花费上限", Context("acme", "alice"), options=OWN_DOCUMENTS).to_dict()
    assert made(run(*asked)) == expected and expected["options"]["fusion"] == "convex"
    assert made(run(*asked, "--fusion", "rrf"))["options"]["fusion"] == "rrf"


class Terminal(io.StringIO):
    """What a bar takes for a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.promise("SYN-9")
def test_progress_is_for_a_terminal(run: Run, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(*desk.line(*TERMS)).err == ""
    desk.put("policies/新.md", "# 新")
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    assert run(*desk.line()).status == 0
    text = shown.getvalue()
    assert "read: 100%" in text and "3/3" in text
    assert "write: 100%" in text and "1/1" in text and "1 chunks encoded" in text
