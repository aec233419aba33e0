"""Forgeries with every digest and the manifest repaired, and folders that nobody makes by accident (EVD-4, EVD-8)."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kbretrieval.evidence import verify_folder
from kbretrieval.evidence.__main__ import main
from kbretrieval.evidence.canonical import MAX_BYTES, canonical_sha256, pretty_bytes, sha256_hex
from kbretrieval.evidence.errors import TrecInvalid
from kbretrieval.evidence.exports import measures
from kbretrieval.evidence.manifest import MANIFEST, change_folder, rebuild_manifest
from kbretrieval.evidence.publishable import every_refusal, text_refusals
from kbretrieval.evidence.schema import schema_refusals
from kbretrieval.evidence.subjects import MAX_SUBJECT_BYTES
from tests.evidence.evidence_claims import MakeClaim, fill

Change = Callable[[dict], object]
POSIX = os.name == "posix"


def forged(path: Path, change: Change) -> list[tuple[str, str]]:
    """Change a claim, repair its digest and the manifest, and return what is still found."""
    document = json.loads(path.read_bytes())
    change(document)
    document["deterministic_sha256"] = canonical_sha256(document["deterministic"])
    path.write_bytes(pretty_bytes(document))
    return found_in(path.parent)


def found_in(folder: Path) -> list[tuple[str, str]]:
    rebuild_manifest(folder)
    return [(finding.step, finding.outcome) for file in verify_folder(folder).files for finding in file.findings]


def at(*names: str, value: object) -> Change:
    def change(document: dict) -> None:
        target = document
        for name in names[:-1]:
            target = target[name]
        target[names[-1]] = value

    return change


def ranked(make_claim: MakeClaim) -> Path:
    """A claim with a ranking beside it, whose figures stand in an aggregate and in `observed`."""
    claim = make_claim("ch07-ranks")
    claim.rows([{"query": "q1", "recall": "1.0"}, {"query": "q2", "recall": "0.5"}])
    claim.equal("recall", claim.aggregate("recall", "mean", "recall"), "0.75")
    claim.observe(figures={"mrr_at_3": "0.75"})
    places = {"recall_at_3": ["#/deterministic/aggregates/recall/value"], "mrr_at_3": ["#/observed/figures/mrr_at_3"]}
    claim.trec({"q1": ["a", "b"], "q2": ["c", "d"]}, {"q1": {"a": 2}, "q2": {"d": 1, "e": 1}}, places)
    path: Path = claim.write()
    return path


@pytest.mark.promise("EVD-4", "EVD-8")
@pytest.mark.parametrize(
    "change",
    [
        at("observed", "figures", "mrr_at_3", value="0.99"),
        at("observed", "figures", value={}),
        at("observed", "trec", "measures", "ndcg_at_10", value="0.999999"),
        at("observed", "trec", "measures", value={}),
        at("observed", "trec", "files", value={}),
        at("observed", "trec", "files", "ch07-ranks.run", value="0" * 64),
        at("observed", "trec", "stands_at", value={"recall_at_3": "#/deterministic/aggregates/recall"}),
        at("observed", "trec", "stands_at", value={"recall_at_4": ["#/deterministic/aggregates/recall/value"]}),
        at("observed", "trec", "stands_at", value={"recall_at_3": ["#/deterministic/rows/" + "9" * 5000]}),
        at("observed", "trec", "stands_at", value=[]),
        at("observed", "trec", value=[]),
        at("deterministic", "rows", value=[{"query": "q1", "recall": "0.8"}, {"query": "q2", "recall": "0.7"}]),
    ],
)
def test_a_figure_that_the_ranking_does_not_give_is_found(make_claim: MakeClaim, change: Change) -> None:
    path = ranked(make_claim)
    assert found_in(path.parent) == []

    def consistent(document: dict) -> None:
        change(document)
        if document["deterministic"]["rows"][0]["recall"] == "0.8":
            document["deterministic"]["rows"][1]["recall"] = "0.8"
            document["deterministic"]["aggregates"]["recall"]["value"] = "0.8"

    assert forged(path, consistent) == [("exports", "fails")]


@pytest.mark.promise("EVD-8")
@pytest.mark.parametrize("name", ["ch07-ranks.run", "ch07-ranks.qrels"])
def test_a_ranking_cannot_be_changed_exchanged_left_out_or_added(make_claim: MakeClaim, name: str) -> None:
    path = ranked(make_claim)
    whole = (path.parent / name).read_bytes()
    (path.parent / name).write_bytes(whole.replace(b"d", b"e"))
    assert found_in(path.parent) == [("exports", "fails")]
    (path.parent / name).unlink()
    assert found_in(path.parent) == [("exports", "fails")]
    (path.parent / name).write_bytes(whole)
    (path.parent / f"ch08-{name}").write_bytes(whole)
    assert found_in(path.parent) == [("exports", "unchecked")]
    (path.parent / f"ch08-{name}").unlink()
    document = json.loads(path.read_bytes())
    del document["observed"]["trec"]
    path.write_bytes(pretty_bytes(document))
    assert found_in(path.parent) == [("exports", "unchecked")] * 2


@pytest.mark.promise("EVD-8")
def test_digest_and_measures_repaired_with_the_ranking_still_miss_the_claims_figures(make_claim: MakeClaim) -> None:
    path = ranked(make_claim)
    run, qrels = path.with_suffix(".run"), path.with_suffix(".qrels")
    run.write_text(run.read_text().replace("c 1", "x 1").replace("d 2", "c 2"))

    def repaired(document: dict) -> None:
        record = document["observed"]["trec"]
        record["files"][run.name] = sha256_hex(run.read_bytes())
        record["measures"] = measures(run.read_text(), qrels.read_text())

    assert forged(path, repaired) == [("exports", "fails")] * 2


@pytest.mark.promise("EVD-8")
def test_a_writer_whose_figure_is_not_the_rankings_writes_nothing(make_claim: MakeClaim, folder: Path) -> None:
    claim = fill(make_claim())
    claim.trec({"q1": ["a"]}, {"q1": {"a": 1}}, {"mrr_at_3": ["#/deterministic/aggregates/mean_rank/value"]})
    with pytest.raises(TrecInvalid, match=r"mrr_at_3 1\.000000 recomputed, another value at"):
        claim.write()
    assert not folder.exists()


@pytest.mark.promise("EVD-8")
@pytest.mark.parametrize(
    ("run", "qrels"),
    [
        ("q Q0 a 1 2 t\nq Q0 b 3 1 t\n", "q 0 a 1\n"),
        ("q Q0 a 1 1 t\nq Q0 b 2 1 t\n", "q 0 a 1\n"),
        ("q Q0 a 1 2 t\nq Q0 a 2 1 t\n", "q 0 a 1\n"),
        ("q Q0 a 1 2 t", "q 0 a 1\n"),
        ("q Q0 a 1 0.5 t\n", "q 0 a 1\n"),
        ("q Q0 a 1 2\n", "q 0 a 1\n"),
        ("q Q0 a 1 2 t\r\n", "q 0 a 1\n"),
        ("q Q0 a 1 2 t\n", "q 0 a 1\nq 0 a 2\n"),
        ("q Q0 a 1 2 t\n", "q 0 a 1.0\n"),
        ("q Q0 a 1 2 t\n", "q 0 a 0\n"),
        ("q Q0 a 1 2 t\n", ""),
    ],
)
def test_what_is_no_ranking_measures_nothing(run: str, qrels: str) -> None:
    with pytest.raises(TrecInvalid):
        measures(run, qrels)


@pytest.mark.promise("EVD-4", "EVD-10")
@pytest.mark.parametrize(
    ("change", "step"),
    [
        (at("limits", value=["Everything is proven."]), "schema"),
        (at("limits", value=[]), "schema"),
        (at("subjects", value=[{"name": "a", "sha256": "0" * 64, "bytes": 0}] * 2), "schema"),
        (
            at("deterministic", "aggregates", value={"leaks": {"op": "count", "where": {"leek": 1}, "value": 0}}),
            "aggregates",
        ),
        (
            at("deterministic", "aggregates", value={"leaks": {"op": "count", "where": {"rank": "7"}, "value": 0}}),
            "aggregates",
        ),
        (at("subjects", value=[{"name": "a" * 300, "sha256": "0" * 64, "bytes": 0}]), "subjects"),
        (at("subjects", value=[{"name": "/".join(["a" * 200] * 40), "sha256": "0" * 64, "bytes": 0}]), "subjects"),
    ],
)
def test_a_claim_that_says_less_than_it_seems_to_is_found(make_claim: MakeClaim, change: Change, step: str) -> None:
    assert forged(fill(make_claim()).write(), change) == [(step, "fails")]


@pytest.mark.promise("EVD-4")
def test_a_claim_under_another_ending_is_not_shown_as_ok(
    make_claim: MakeClaim, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = fill(make_claim()).write()
    path.rename(path.with_suffix(".JSON"))
    fill(make_claim("other")).write()
    assert found_in(folder) == [("exports", "unchecked")]
    assert main(["verify", str(folder)]) == 2
    assert "NOT CHECKED  ch07-ranks.JSON" in capsys.readouterr().out


@pytest.mark.promise("EVD-4")
@pytest.mark.skipif(not POSIX, reason="pipes and links as POSIX has them")
def test_links_pipes_and_files_without_end_are_refused_and_never_read(make_claim: MakeClaim, folder: Path) -> None:
    fill(make_claim()).write()
    os.mkfifo(folder / "pipe.json")
    (folder / "zero.run").symlink_to("/dev/zero")
    (folder / "gone.run").symlink_to("nowhere")
    (folder / "again").symlink_to(".")
    (folder / "copy.json").symlink_to("ch07-ranks.json")
    with (folder / "large.json").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    rebuild_manifest(folder)
    assert list(json.loads((folder / MANIFEST).read_bytes())) == ["ch07-ranks.json"]
    report = verify_folder(folder)
    refused = {file.name: file.findings[0].detail for file in report.files if file.state == "fails"}
    assert sorted(refused) == ["again", "copy.json", "gone.run", "large.json", "pipe.json", "zero.run"]
    assert refused["large.json"].startswith(f"{MAX_BYTES + 1} bytes given")
    assert {refused[name] for name in ("again", "copy.json", "zero.run")} == {"a link given, a regular file needed"}
    assert report.exit_code == 1


@pytest.mark.promise("EVD-4")
@pytest.mark.skipif(not POSIX, reason="a sparse file takes no place on POSIX systems")
def test_a_manifest_and_a_subject_without_end_are_refused(make_claim: MakeClaim, folder: Path, root: Path) -> None:
    fill(make_claim()).write()
    with (root / "fixtures" / "corpus.json").open("r+b") as file:
        file.truncate(MAX_SUBJECT_BYTES + 1)
    (claim,) = [file for file in verify_folder(folder).files if file.state == "fails"]
    assert claim.findings[0].detail.endswith(f"at most {MAX_SUBJECT_BYTES} allowed"), "the file is not read to its end"
    with (folder / MANIFEST).open("r+b") as file:
        file.truncate(MAX_BYTES + 1)
    found = {(file.name, file.state) for file in verify_folder(folder).files}
    assert found == {(MANIFEST, "fails"), ("ch07-ranks.json", "fails")}


@pytest.mark.promise("EVD-3", "EVD-10")
def test_the_schema_itself_asks_for_the_limit_of_an_unsigned_file(make_claim: MakeClaim) -> None:
    document = json.loads(fill(make_claim()).write().read_bytes())
    assert schema_refusals(document) == []
    assert schema_refusals(document | {"limits": ["a"]})[0].startswith("$.limits: contains: This file is not signed")


@pytest.mark.promise("EVD-4")
@pytest.mark.parametrize("before", ["", "a", "a ", "0" * 20, "名"])
@pytest.mark.parametrize(
    "secret",
    [
        "/" + "home/x",
        "A=/" + "b",
        "C:" + "\\Users",
        "\\" + "\\host\\share",
        "~" + "root/x",
        "file:" + "///x",
        "SECRET" + "-GAMMA",
        "-----BEGIN " + "PRIVATE KEY-----",
        "gh" + "p_" + "a" * 30,
        "github" + "_pat_" + "a" * 30,
        "glpat" + "-" + "a" * 20,
        "hf" + "_" + "a" * 30,
        "sk" + "-" + "a" * 20,
        "AI" + "za" + "a" * 30,
        "pypi" + "-" + "a" * 30,
        "xoxb" + "-" + "a" * 10,
        "AK" + "IA" + "A" * 16,
        "Bearer " + "a" * 16,
        "pass" + "word=" + "abcdefgh",
        "https://u:" + "p@example.org/",
        "ey" + "J" + "a" * 8 + ".ey" + "J" + "b" * 8 + ".c",
    ],
)
def test_the_one_look_misses_nothing_that_every_form_finds(before: str, secret: str) -> None:
    assert every_refusal(secret)
    for text in (before + secret, f"{secret} {before}", f"{before}\n{secret}\n{before}"):
        assert text_refusals(text) == every_refusal(text)


def test_a_folder_that_cannot_be_listed_is_no_reason_to_stop(tmp_path: Path) -> None:
    change_folder(tmp_path / "evidence", {})
    (tmp_path / "evidence" / "sub").mkdir()
    assert verify_folder(tmp_path / "evidence").exit_code == 2
    assert verify_folder(tmp_path / "evidence" / MANIFEST).exit_code == 2
