"""OBS-5: `explain`, the same four answers as a command."""

import json
from pathlib import Path

import pytest

from kbretrieval import Context, Index
from kbretrieval.cli.explained import FIRST_LINE
from tests.cli.conftest import Run

ALICE = Context("acme", "alice")
WHO = ("--tenant", "acme", "--as", "alice")


def kept_hits(kb: Path, path: Path) -> Path:
    """Hits from before the document changed and its list was replaced."""
    with Index.open(kb) as index:
        path.write_text(json.dumps(index.search("住宿限额", ALICE).to_dict()), encoding="utf-8", newline="\n")
        index.upsert("acme", "travel", 2, "markdown", "# 差旅\n\n住宿每晚限额600元。", [])
        index.set_acl("acme", "travel", ["alice"], 1)
    return path


@pytest.mark.promise("OBS-5")
def test_explain_prints_what_the_api_returns(run: Run, kb: Path, tmp_path: Path) -> None:
    hits = kept_hits(kb, tmp_path / "hits.json")
    done = run("explain", "travel", "--index", kb, *WHO, "--group", "hr", "--hits", hits, "--json")
    assert (done.status, done.err) == (0, "")
    with Index.open(kb) as index:
        kept = json.loads(hits.read_text(encoding="utf-8"))["hits"]
        expected = index.explain("travel", Context("acme", "alice", ("hr",)), kept)
    assert json.loads(done.out) == json.loads(json.dumps(expected.to_dict()))


@pytest.mark.promise("OBS-5", "ACL-8")
def test_the_first_line_says_whom_it_is_for_and_each_question_is_answered(run: Run, kb: Path, tmp_path: Path) -> None:
    hits = kept_hits(kb, tmp_path / "hits.json")
    done = run("explain", "docs/travel", "--index", kb, *WHO, "--hits", hits)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(FIRST_LINE + "travel in acme: live\n") and FIRST_LINE.startswith("Maintenance view")
    lines = [line.split("  ") for line in done.out.splitlines()]
    words = [[word.strip() for word in line if word.strip()] for line in lines]
    assert ["revision", "2"] in words and ["intact", "yes"] in words and ["contract: chunk_size", "220"] in words
    assert ["may alice read it: yes, by alice"] in words and ["acl_revision", "2"] in words
    with Index.open(kb) as index:
        found = index.explain("travel", ALICE, json.loads(hits.read_text(encoding="utf-8"))["hits"])
    assert found.source is not None and found.version is not None
    (chunk,) = found.source.chunks
    place = ["0", str(chunk.chunk_key), f"{chunk.start}-{chunk.end}", f"{chunk.line_start}-{chunk.line_end}"]
    assert [*place, chunk.sha256, "yes"] in words
    assert ["acl_revision", "2", "ACL changed", "-"] in words and ["document", "live", "deleted", "holds"] in words
    (told,) = [line for line in words if line[:3] == ["0", "ACL changed", "yes"]]
    assert told[3].startswith("acl_revision 1, 2 stored; revision 1, 2 stored; document_sha256 ")
    assert "住宿" not in done.out


@pytest.mark.promise("OBS-5")
@pytest.mark.parametrize(
    ("doc_id", "principal", "says"),
    [
        ("travel", "bob", "may bob read it: no: no entry admits"),
        ("gone", "alice", "may alice read it: no: deleted"),
        ("never", "alice", "may alice read it: no: absent"),
    ],
)
def test_a_reason_for_each_refusal_and_still_status_0(
    run: Run, kb: Path, doc_id: str, principal: str, says: str
) -> None:
    done = run("explain", doc_id, "--index", kb, "--tenant", "acme", "--as", principal)
    assert (done.status, done.err) == (0, "")
    assert says in done.out.splitlines() and "FAILS EVERY HIT" in done.out


@pytest.mark.promise("OBS-5", "ERR-2")
def test_what_explain_refuses(run: Run, kb: Path, tmp_path: Path) -> None:
    absent = run("explain", "travel", "--index", tmp_path / "none.sqlite", *WHO)
    assert absent.status == 6 and absent.err.startswith("index_missing: ")
    name = run("explain", "", "--index", kb, *WHO)
    assert name.status == 2 and name.err.startswith("invalid_identity: ")
    hits = run("explain", "travel", "--index", kb, *WHO, "--hits", tmp_path / "none.json")
    assert hits.status == 2 and hits.err.startswith("invalid_path: ")
