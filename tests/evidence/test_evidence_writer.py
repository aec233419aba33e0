"""The writer: EVD-1, EVD-7, EVD-10, and the manifest under two writers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kbretrieval.evidence import Claim, literal_outcomes, verify_folder
from kbretrieval.evidence.environment import cpu, package_versions, source_sha256
from kbretrieval.evidence.errors import (
    CheckFailed,
    ClaimClosed,
    DuplicateCheck,
    NoCheck,
    NotPublishable,
    RowsClosed,
    SchemaInvalid,
    SubjectInvalid,
)
from kbretrieval.evidence.manifest import MANIFEST, manifest_bytes
from kbretrieval.evidence.writer import UNSIGNED
from tests.evidence.evidence_claims import MakeClaim, fill


def load(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.promise("EVD-1", "EVD-10")
def test_a_written_claim_has_every_part(make_claim: MakeClaim, folder: Path) -> None:
    path = fill(make_claim(packages=("numpy", "no-such-distribution"))).write()
    document = load(path)
    assert document["deterministic"]["rows"][0] == {"query": "q00", "rank": 1, "score": "0.01639344262295082"}
    assert document["deterministic"]["aggregates"]["mean_rank"] == {"op": "mean", "field": "rank", "value": "1.5"}
    assert document["observed"] == {"wall_ms": "0.25"}
    assert document["tests"] == {"result": "passed", "passed": ["ranks"], "failed": [], "skipped": []}
    assert document["limits"] == [UNSIGNED]
    assert document["environment"]["packages"]["no-such-distribution"] is None
    assert document["environment"]["package"]["source_sha256"] == source_sha256()
    assert [subject["name"] for subject in document["subjects"]] == ["fixtures/corpus.json"]
    assert b"\r" not in path.read_bytes()
    assert verify_folder(folder).exit_code == 0


def mean_rank(ranks: list[int], broken: bool) -> float:
    return sum(ranks) / (len(ranks) + (1 if broken else 0))


@pytest.mark.promise("EVD-7")
@pytest.mark.parametrize("kind", ["check", "equal", "within"])
def test_a_broken_computation_writes_nothing_and_takes_the_old_file_away(
    make_claim: MakeClaim, folder: Path, kind: str
) -> None:
    def run(broken: bool) -> None:
        with make_claim() as claim:
            claim.rows({"rank": rank} for rank in (1, 2, 3))
            claim.trec({"q": ["a"]}, {"q": {"a": 1}})
            got = mean_rank([1, 2, 3], broken)
            if kind == "check":
                claim.check("mean", got == 2)
            elif kind == "equal":
                claim.equal("mean", got, 2.0)
            else:
                claim.within("mean", got, 2.0, 0.03)

    run(broken=False)
    assert sorted(load(folder / MANIFEST)) == ["ch07-ranks.json", "ch07-ranks.qrels", "ch07-ranks.run"]
    with pytest.raises(CheckFailed, match=r"evidence_check_failed: ch07-ranks: mean: .* given, .* expected"):
        run(broken=True)
    assert sorted(path.name for path in folder.iterdir()) == [".lock", MANIFEST]
    assert load(folder / MANIFEST) == {}


@pytest.mark.promise("EVD-7")
def test_a_refuted_claim_cannot_be_written_by_a_later_cell(make_claim: MakeClaim, folder: Path) -> None:
    claim = fill(make_claim())
    with pytest.raises(CheckFailed):
        claim.equal("again", 1, True)
    for call in (claim.write, lambda: claim.skip("b", "c"), lambda: claim.row(a=1)):
        with pytest.raises(ClaimClosed):
            call()
    assert not folder.exists()


def test_another_exception_writes_nothing_and_leaves_the_old_file(make_claim: MakeClaim, folder: Path) -> None:
    fill(make_claim()).write()
    before = (folder / "ch07-ranks.json").read_bytes()
    with pytest.raises(KeyError), make_claim() as claim:
        fill(claim, (5, 6))
        raise KeyError("engine")
    assert (folder / "ch07-ranks.json").read_bytes() == before


@pytest.mark.promise("EVD-7")
@pytest.mark.parametrize("outcome", [1, "true", None, [True], 1.0])
def test_an_outcome_is_a_boolean(make_claim: MakeClaim, outcome: object) -> None:
    with pytest.raises(SchemaInvalid):
        make_claim().check("a", outcome)


@pytest.mark.promise("EVD-7")
def test_no_check_no_file(make_claim: MakeClaim, folder: Path) -> None:
    claim = make_claim()
    claim.row(a=1)
    claim.skip("model", "model_missing")
    with pytest.raises(NoCheck):
        claim.write()
    assert not folder.exists()


@pytest.mark.promise("EVD-7")
def test_a_refusal_is_checked_by_its_class(make_claim: MakeClaim) -> None:
    claim = make_claim()
    assert claim.refused("closed", NoCheck, lambda: make_claim("other").write()) == "evidence_no_check"
    with pytest.raises(CheckFailed, match="no refusal given, KeyError expected"):
        claim.refused("open", KeyError, lambda: 1)


def test_messages_never_carry_the_text_of_a_document(make_claim: MakeClaim) -> None:
    with pytest.raises(CheckFailed) as refusal:
        make_claim().equal("quote", "每晚限额为五百元", "two words")
    assert "五百" not in str(refusal.value)
    assert "two words" not in str(refusal.value)


def test_misuse_is_refused(make_claim: MakeClaim, root: Path) -> None:
    claim = fill(make_claim())
    with pytest.raises(RowsClosed):
        claim.row(a=1)
    with pytest.raises(DuplicateCheck):
        claim.skip("ranks", "again")
    with pytest.raises(SubjectInvalid):
        claim.subject("fixtures/missing.json")
    (root / "fixtures" / "corpus.json").write_bytes(b"changed")
    with pytest.raises(SubjectInvalid, match="changed in between"):
        claim.subject("fixtures/corpus.json")


@pytest.mark.parametrize("name", ["/etc/hosts", "../x", "a/../b", "a//b", "C:/x", "a\\b", "", "./a"])
def test_subjects_stay_below_the_root(make_claim: MakeClaim, name: str) -> None:
    with pytest.raises(SubjectInvalid):
        make_claim().subject(name)


@pytest.mark.parametrize(
    ("field", "value"),
    [("id", "Upper"), ("id", "a/b"), ("chapter", 0), ("promises", ("evd1",)), ("seed", -1), ("argv", ())],
)
def test_a_claim_that_leaves_the_schema_is_not_written(
    make_claim: MakeClaim, folder: Path, field: str, value: object
) -> None:
    claim = fill(make_claim(value) if field == "id" else make_claim(**{field: value}))
    with pytest.raises(SchemaInvalid):
        claim.write()
    assert not folder.exists()


@pytest.mark.promise("EVD-4")
def test_a_path_or_a_secret_is_not_written(make_claim: MakeClaim, folder: Path) -> None:
    claim = fill(make_claim())
    claim.observe(log="/" + "srv/kb/run.log")
    with pytest.raises(NotPublishable, match=r"\$\.observed\.log: an absolute POSIX path"):
        claim.write()
    assert not folder.exists()


@pytest.mark.promise("MOD-4")
def test_a_skip_makes_the_claim_incomplete(make_claim: MakeClaim, folder: Path) -> None:
    claim = fill(make_claim())
    claim.skip("vectors", "model_missing")
    assert load(claim.write())["tests"]["result"] == "incomplete"
    assert verify_folder(folder).exit_code == 2


def test_a_newer_claim_without_a_ranking_takes_the_old_ranking_away(make_claim: MakeClaim, folder: Path) -> None:
    claim = fill(make_claim())
    claim.trec({"q": ["a"]}, {"q": {"a": 1}})
    claim.write()
    fill(make_claim()).write()
    assert list(load(folder / MANIFEST)) == ["ch07-ranks.json"]


WRITER = """
import sys
from kbretrieval.evidence import Claim
for at in range(12):
    with Claim(f"w{sys.argv[1]}-{at}", "x", argv=("python",), folder=sys.argv[2]) as claim:
        claim.row(at=at)
        claim.equal("at", at, int(str(at)))
"""


def test_two_processes_writing_at_once_lose_no_entry(folder: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(number), str(folder)]) for number in range(3)]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]
    expected = sorted(f"w{number}-{at}.json" for number in range(3) for at in range(12))
    assert list(load(folder / MANIFEST)) == expected
    assert verify_folder(folder).exit_code == 0
    assert not list(folder.glob(".*.tmp"))


def test_the_manifest_heals_after_a_crash_between_file_and_manifest(make_claim: MakeClaim, folder: Path) -> None:
    fill(make_claim("a")).write()
    (folder / MANIFEST).write_bytes(manifest_bytes({}))
    assert verify_folder(folder).exit_code == 1
    fill(make_claim("b")).write()
    assert list(load(folder / MANIFEST)) == ["a.json", "b.json"]
    assert verify_folder(folder).exit_code == 0


def test_the_source_digest_does_not_see_line_ends_but_sees_names_and_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\n")
    unix = source_sha256(tmp_path)
    (tmp_path / "a.py").write_bytes(b"x = 1\r\n")
    assert source_sha256(tmp_path) == unix
    (tmp_path / "a.py").write_bytes(b"x = 2\n")
    assert source_sha256(tmp_path) != unix
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    (tmp_path / "b.py").write_bytes(b"x = 1\n")
    assert source_sha256(tmp_path) != unix


def test_the_processor_is_read_from_either_form(tmp_path: Path) -> None:
    information = tmp_path / "cpuinfo"
    information.write_text("model name\t: Some CPU\nflags\t\t: fpu avx2 fma\n", encoding="utf-8", newline="\n")
    assert cpu(information) == {"model": "Some CPU", "flags": ["avx2", "fma"]}
    information.write_text("processor : 0\nFeatures : fp asimd\n", encoding="utf-8", newline="\n")
    assert cpu(information)["flags"] == ["asimd"]
    assert cpu(tmp_path / "absent")["flags"] == []
    assert package_versions(["pytest"]) == {"pytest": pytest.__version__}


@pytest.mark.promise("EVD-7")
def test_literal_outcomes_are_found_in_source() -> None:
    source = "\n".join(
        [
            "c.check('a', True)",
            "c.check('b', got == 1)",
            "c.equal('c', [1], [1])",
            "c.equal('d', got, [1])",
            "c.check(name='e', outcome=True)",
            "c.within('f', 1.0, 1.0, tolerance)",
            "c.equal('g', expected=1, got=1)",
        ]
    )
    assert literal_outcomes(source) == [1, 3, 5, 6, 7]


def test_the_default_folder_follows_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KBRETRIEVAL_EVIDENCE", str(tmp_path / "out"))
    claim = Claim("a", "x", argv=("python",))
    assert claim.path == tmp_path / "out" / "a.json"
    monkeypatch.delenv("KBRETRIEVAL_EVIDENCE")
    assert Claim("a", "x", argv=("python",)).folder.parts[-2:] == ("build", "evidence")
