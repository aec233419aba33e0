"""The verifier: EVD-4, EVD-5."""

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kbretrieval.evidence import verify_folder
from kbretrieval.evidence.__main__ import main
from kbretrieval.evidence.canonical import canonical_sha256, parse, pretty_bytes, sha256_hex
from kbretrieval.evidence.manifest import MANIFEST, folder_files, rebuild_manifest
from kbretrieval.evidence.publishable import text_refusals
from kbretrieval.evidence.subjects import Digest, shipped
from kbretrieval.evidence.verify import check_claim, check_manifest, find_root
from tests.evidence.evidence_claims import MakeClaim, fill

CHECKOUT = Path(__file__).resolve().parents[2]


def altered(path: Path, change: Callable[[dict], object], digest: bool = True) -> list[tuple[str, str]]:
    """Change one file's content, keep everything around it consistent, and return what is still found."""
    document = json.loads(path.read_bytes())
    change(document)
    if digest:
        document["deterministic_sha256"] = canonical_sha256(document["deterministic"])
    path.write_bytes(pretty_bytes(document))
    rebuild_manifest(path.parent)
    report = verify_folder(path.parent)
    return [(finding.step, finding.outcome) for file in report.files for finding in file.findings]


def put(*names: str | int, value: object) -> Callable[[dict], None]:
    def change(document: dict) -> None:
        target: object = document
        for name in names[:-1]:
            target = target[name]  # type: ignore[index]
        target[names[-1]] = value  # type: ignore[index]

    return change


@pytest.mark.promise("EVD-4")
@pytest.mark.parametrize(
    ("change", "found"),
    [
        (put("tests", "result", value="incomplete"), ("counts", "fails")),
        (put("tests", "passed", value=[]), ("counts", "fails")),
        (put("tests", "skipped", value=[{"name": "b", "reason": "c"}]), ("counts", "fails")),
        (
            put("tests", value={"result": "failed", "passed": ["a"], "failed": ["b"], "skipped": []}),
            ("counts", "fails"),
        ),
        (put("claim", "id", value="other"), ("counts", "fails")),
        (put("claim", "extra", value=1), ("schema", "fails")),
        (put("deterministic", "rows", 0, "rank", value=7), ("aggregates", "fails")),
        (put("deterministic", "aggregates", "mean_rank", "value", value="1.6"), ("aggregates", "fails")),
        (put("deterministic", "aggregates", "mean_rank", "field", value="absent"), ("aggregates", "fails")),
        (put("subjects", 0, "bytes", value=1), ("subjects", "fails")),
        (put("subjects", 0, "sha256", value="0" * 64), ("subjects", "fails")),
        (put("subjects", 0, "name", value="../x"), ("subjects", "fails")),
        (put("subjects", 0, "name", value="absent.json"), ("subjects", "unchecked")),
        (put("observed", "at", value="D:" + "\\x"), ("publishable", "fails")),
        (put("environment", "package", "source_sha256", value="0" * 64), ("source", "note")),
    ],
)
def test_an_alteration_with_a_repaired_digest_and_manifest_is_still_found(
    make_claim: MakeClaim, change: Callable[[dict], object], found: tuple[str, str]
) -> None:
    assert found in altered(fill(make_claim()).write(), change)


@pytest.mark.promise("EVD-4")
def test_the_digest_alone_is_enough_when_no_aggregate_looks_at_the_row(make_claim: MakeClaim) -> None:
    path = fill(make_claim()).write()
    assert altered(path, put("deterministic", "rows", 0, "query", value="q99"), digest=False) == [("digest", "fails")]


@pytest.mark.promise("EVD-4")
def test_duplicate_keys_floats_and_another_layout_are_found(make_claim: MakeClaim, folder: Path) -> None:
    path = fill(make_claim()).write()
    whole = path.read_bytes()
    for raw in (whole.replace(b'"rank":1', b'"rank":1,"rank":1'), whole.replace(b'"rank":1', b'"rank":1.5')):
        path.write_bytes(raw)
        rebuild_manifest(folder)
        assert [finding.step for file in verify_folder(folder).files for finding in file.findings] == ["parse"]
    path.write_bytes(json.dumps(json.loads(whole)).encode("utf-8"))
    rebuild_manifest(folder)
    assert verify_folder(folder).files[1].findings[0].detail.startswith("the bytes are not the one stored form")


@pytest.mark.promise("EVD-4")
def test_files_that_come_or_go_are_found(three: list[str], folder: Path) -> None:
    assert verify_folder(folder).exit_code == 0
    (folder / "book-demo.run").rename(folder / "other.run")
    details = {finding.detail for file in verify_folder(folder).files for finding in file.findings}
    run = details - {"book-demo.run is listed and missing", "not listed in the manifest"}
    assert len(run) == 2 and "no claim of this folder names it" in run, "the claim misses its ranking, too"
    (folder / MANIFEST).unlink()
    assert verify_folder(folder).exit_code == 1


@pytest.mark.promise("EVD-4")
def test_failing_goes_before_not_checked_and_an_empty_folder_is_not_ok(
    make_claim: MakeClaim, folder: Path, root: Path
) -> None:
    folder.mkdir()
    assert verify_folder(folder).exit_code == 2
    fill(make_claim("a")).write()
    fill(make_claim("b")).write()
    assert verify_folder(folder).exit_code == 0
    (root / "fixtures" / "corpus.json").unlink()
    assert verify_folder(folder).exit_code == 2
    (folder / "a.json").write_bytes(b"{}")
    assert verify_folder(folder).exit_code == 1


@pytest.mark.promise("EVD-4")
def test_a_link_that_leads_out_of_the_root_is_no_subject(root: Path, folder: Path) -> None:
    from kbretrieval.evidence.errors import SubjectInvalid

    outside = root.parent / "outside.txt"
    outside.write_bytes(b"x")
    try:
        (root / "link.txt").symlink_to(outside)
    except OSError:
        pytest.skip("this system does not let us make a symbolic link")
    with pytest.raises(SubjectInvalid, match="leads out"):
        shipped(root, "link.txt")


@pytest.mark.promise("EVD-4")
@pytest.mark.parametrize(
    "text",
    [
        "/" + "home/x",
        "see (/" + "usr/lib)",
        "路径：/" + "var/x",
        "A=/" + "b",
        "C:" + "\\Users",
        "d:" + "/x",
        "\\" + "\\host\\share",
        "~" + "/x",
        "~" + "root/x",
        "file:" + "///x",
        "SECRET" + "-GAMMA",
        "SECRET" + "-BETA-2",
        "-----BEGIN " + "PRIVATE KEY-----",
        "gh" + "p_" + "a" * 36,
        "hf" + "_" + "a" * 34,
        "sk" + "-" + "a" * 24,
        "AK" + "IA" + "A" * 16,
        "Bearer " + "a" * 20,
        "pass" + "word=" + "abcdefgh",
        "https://u:" + "p@example.org/",
        "ey" + "J" + "a" * 10 + ".ey" + "J" + "b" * 10 + ".c",
    ],
)
def test_paths_and_secrets_are_found(text: str) -> None:
    assert text_refusals(text)


@pytest.mark.promise("EVD-4")
@pytest.mark.parametrize(
    "text",
    [
        "SECRET-ACME-BOB 和 SECRET-BETA",
        "https://example.org/a/b",
        "和/或 1/2 fixtures/corpus.json ../x",
        "Linux-6.1-x86_64-with-glibc2.36",
        "rank: 1 / 3",
        "Intel(R) Xeon(R) CPU @ 2.20GHz",
        "a password is needed",
        "差旅费用 10:30",
        "约~5/10",
    ],
)
def test_plain_text_is_not_taken_for_a_path_or_a_secret(text: str) -> None:
    assert text_refusals(text) == []


class Workbench:
    """Files, manifest and subject in memory, so that one changed byte is judged in well under a millisecond."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.files = folder_files(folder)
        self.manifest = (folder / MANIFEST).read_bytes()
        self.subject = (root / "fixtures" / "corpus.json").read_bytes()
        self.listed = check_manifest(self.manifest, self.files)[1]
        self.claims = [name for name in self.files if name.endswith(".json")]

    def finds(self, name: str, raw: bytes) -> bool:
        if name == MANIFEST:
            own, listed = check_manifest(raw, self.files)
            return own.state == "fails" or any(listed.get(n) != sha256_hex(r) for n, r in self.files.items())
        if name == "subject":
            return self.judged(self.claims[0], self.files[self.claims[0]], raw) == "fails"
        if name.endswith(".json"):
            return self.judged(name, raw, self.subject) == "fails"
        return self.listed[name] != sha256_hex(raw)

    def judged(self, name: str, raw: bytes, subject: bytes) -> str:
        digest = Digest(sha256_hex(subject), len(subject))
        return check_claim(name, raw, self.listed[name], lambda _: digest, files=self.files).state


def with_byte(raw: bytes, at: int, value: int) -> bytes:
    return raw[:at] + bytes([value]) + raw[at + 1 :]


@pytest.mark.slow
@pytest.mark.promise("EVD-5")
def test_a_change_of_any_byte_of_three_files_the_manifest_and_the_subject_is_found(
    three: list[str], folder: Path, root: Path
) -> None:
    bench = Workbench(folder, root)
    choice = random.Random(5)
    whole = {f"{name}.json": bench.files[f"{name}.json"] for name in three}
    whole |= {MANIFEST: bench.manifest, "subject": bench.subject}
    assert not any(bench.finds(name, raw) for name, raw in whole.items())
    missed = [
        (name, at)
        for name, raw in whole.items()
        for at in range(len(raw))
        if not bench.finds(name, with_byte(raw, at, raw[at] ^ choice.randrange(1, 256)))
    ]
    assert missed == []
    assert sum(map(len, whole.values())) > 4000


@pytest.mark.slow
@pytest.mark.promise("EVD-5")
def test_ten_thousand_random_changes_are_found(three: list[str], folder: Path, root: Path) -> None:
    bench = Workbench(folder, root)
    whole = {**bench.files, MANIFEST: bench.manifest, "subject": bench.subject}
    places = [(name, at) for name, raw in whole.items() for at in range(len(raw))]
    choice = random.Random(10_000)
    for _ in range(10_000):
        name, at = choice.choice(places)
        raw = whole[name]
        value = raw[at] ^ choice.randrange(1, 256)
        assert bench.finds(name, with_byte(raw, at, value)), (name, at, value)


@pytest.mark.slow
@pytest.mark.promise("EVD-5")
def test_without_the_manifest_every_byte_of_the_deterministic_part_is_still_covered(
    three: list[str], folder: Path, root: Path
) -> None:
    bench = Workbench(folder, root)
    raw, files = bench.files["book-demo.json"], bench.files
    start, end = raw.index(b'"deterministic"'), raw.index(b'"environment"')
    digest = Digest(sha256_hex(bench.subject), len(bench.subject))
    for at in range(start, end):
        one = with_byte(raw, at, raw[at] ^ 1)
        found = check_claim("book-demo.json", one, sha256_hex(one), lambda _: digest, files=files)
        assert found.state == "fails", at


@pytest.mark.promise("EVD-5")
def test_a_changed_byte_on_disk_is_found_by_the_command(
    three: list[str], folder: Path, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(folder)]) == 0
    subject = root / "fixtures" / "corpus.json"
    subject.write_bytes(with_byte(subject.read_bytes(), 3, 0))
    assert main(["verify", str(folder)]) == 1
    shown = capsys.readouterr().out
    assert shown.count("FAILED") == 3
    assert "subjects: fixtures/corpus.json" in shown


@pytest.mark.promise("EVD-4", "MOD-4")
def test_not_checked_is_never_shown_as_ok(
    make_claim: MakeClaim, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = fill(make_claim())
    claim.skip("vectors", "model_missing: 模型不在\x1b[31m")
    claim.write()
    assert main(["verify", str(folder)]) == 2
    shown = capsys.readouterr().out
    assert "NOT CHECKED  ch07-ranks.json" in shown
    assert "vectors was skipped: model_missing: 模型不在\\x1b" in shown
    assert not any(line.startswith("ok") and "ch07" in line for line in shown.splitlines())
    assert "1 not checked" in shown.splitlines()[-1]
    assert main(["verify", str(folder), "--json"]) == 2
    report = json.loads(capsys.readouterr().out)
    assert report["exit_code"] == 2
    assert report["files"][1]["state"] == "unchecked"


@pytest.mark.promise("EVD-4")
def test_it_says_when_the_present_source_is_another_one(
    make_claim: MakeClaim, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = fill(make_claim()).write()
    altered(path, put("environment", "package", "source_sha256", value="0" * 64))
    assert main(["verify", str(folder)]) == 0
    assert "note: 1 files were written by another source than the present one" in capsys.readouterr().out


@pytest.mark.promise("EVD-4")
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_one_command_from_a_checkout_with_nothing_installed(three: list[str], folder: Path, encoding: str) -> None:
    # -E would drop PYTHONIOENCODING, so the encoding is set from inside.
    start = f"import sys, runpy; sys.stdout.reconfigure(encoding={encoding!r}); "
    code = start + f"sys.argv = ['x', 'verify', {str(folder)!r}]; "
    code += "runpy.run_module('kbretrieval.evidence', run_name='__main__')"
    ended = subprocess.run([sys.executable, "-S", "-E", "-c", code], cwd=CHECKOUT, capture_output=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
    plain = [sys.executable, "-S", "-E", "-m", "kbretrieval.evidence", "verify", str(folder)]
    assert subprocess.run(plain, cwd=CHECKOUT, capture_output=True, check=False).returncode == 0


@pytest.mark.alone
@pytest.mark.promise("EVD-4")
def test_forty_files_take_less_than_two_seconds(make_claim: MakeClaim, folder: Path) -> None:
    for at in range(40):
        fill(make_claim(f"claim-{at}"), tuple(range(1, 101))).write()
    command = [sys.executable, "-S", "-E", "-m", "kbretrieval.evidence", "verify", str(folder)]
    best = min(_seconds(command) for _ in range(3))
    assert best < 2.0, f"{best:.2f} s for 40 files"


def _seconds(command: list[str]) -> float:
    start = time.perf_counter()
    assert subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=False).returncode == 0
    return time.perf_counter() - start


def test_the_root_is_the_checkout_around_the_folder(tmp_path: Path) -> None:
    assert find_root(tmp_path / "a" / "evidence") == tmp_path / "a"
    (tmp_path / "pyproject.toml").touch()
    assert find_root(tmp_path / "build" / "evidence") == tmp_path


def test_hostile_files_are_reported_and_never_raise(folder: Path) -> None:
    folder.mkdir()
    hostile = [b"", b"\xff", b"null", b"[]", b"{}", b'{"schema": {}}', b"[" * 100_000, b'{"claim": {"id": []}}']
    for at, raw in enumerate(hostile):
        (folder / f"h{at}.json").write_bytes(raw)
    (folder / MANIFEST).write_bytes(b'{"h0.json": 1}')
    report = verify_folder(folder)
    assert {file.state for file in report.files} == {"fails"}
    assert len(report.files) == len(hostile) + 1


def test_the_manifest_command_lists_what_is_there(three: list[str], folder: Path) -> None:
    (folder / "extra.txt").write_bytes(b"x")
    assert verify_folder(folder).exit_code == 1
    assert main(["manifest", str(folder)]) == 0
    report = verify_folder(folder)
    assert [file.name for file in report.files if file.state != "holds"] == ["extra.txt"]
    assert report.exit_code == 2, "no claim says what it is, so nobody can say that it holds"
    assert "extra.txt" in str(parse((folder / MANIFEST).read_bytes()))
