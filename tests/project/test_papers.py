"""The papers of the repository: nothing of one machine in them, no dead link, one version."""

import re
import subprocess
from pathlib import Path

import pytest

import kbretrieval

ROOT = Path(__file__).resolve().parents[2]
TEXT = {".py", ".md", ".toml", ".yml", ".txt", ".json", ".ipynb", ".html", ".css", ".cfg", ""}
REQUIRED = """
    README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md SECURITY.md LICENSE pyproject.toml constraints.txt
    environment.yml Makefile
    .gitattributes .gitignore .ci/run .github/workflows/test.yml docs/promises.toml docs/promises.md
    fixtures/corpus.json fixtures/queries.json fixtures/manifest.json fixtures/offline/semantic-search-fixture.json
    kbretrieval/py.typed kbretrieval/book/font/OFL.txt
"""
# Put together from parts, or this file would be the first to break its own rule.
HOSTS = [
    *("pypi." + top for top in ("org", "python.org")),
    *(
        name + ".org"
        for name in ("files.pythonhosted", "registry.npmjs", "conda.anaconda", "repo1.maven", "repo.maven")
    ),
    *("--" + option for option in ("index-url", "extra-index-url", "trusted-host", "find-links")),
]
HOME = re.compile(r"(?<![\w.~/])/(?:root|home/\w+|Users/\w+|work/\w+)/|\b[A-Z]:\\{1,2}Users\\")


def _tracked() -> list[str]:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    return [name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


def strangers(text: str, test: bool = False) -> list[str]:
    """Hosts of package registries, and absolute paths of one machine; tests may plant paths of nobody's machine."""
    found = [host for host in HOSTS if host in text]
    if not test:
        found += HOME.findall(text)
    return found + [str(ROOT)] * (str(ROOT) + "/" in text)


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    found = {}
    for name in _tracked():
        if Path(name).suffix in TEXT and (ROOT / name) != Path(__file__).resolve():
            text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
            found[name] = strangers(text, test=name.startswith("tests/"))
    assert len(found) > 30, "the listing of tracked files is too short to be true"
    assert not {name: what for name, what in found.items() if what}


@pytest.mark.parametrize(
    "text",
    ["see /home/alice/kb.sqlite", "(/root/x)", '"/Users/bob/x"', "C:\\Users\\bob", *HOSTS, f"at {ROOT}/README.md"],
)
def test_a_stranger_is_found(text: str) -> None:
    assert strangers(text)


@pytest.mark.parametrize("text", ["~/kb.sqlite", "projects/home/alice/x", "https://example.org/home/alice/", "home/"])
def test_what_only_looks_like_one_is_none(text: str) -> None:
    assert not strangers(text)


@pytest.mark.parametrize("name", REQUIRED.split())
def test_what_a_reader_expects_is_there(name: str) -> None:
    assert name in _tracked()
    assert (ROOT / name).stat().st_size > 0 or name.endswith("py.typed")


@pytest.mark.parametrize("name", [name for name in _tracked() if name.endswith(".md")])
def test_no_link_is_dead(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text)
    assert not [link for link in links if not (ROOT / name).parent.joinpath(link).exists()]


def test_the_changelog_knows_the_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\]", text, re.MULTILINE)
    assert released[0] == kbretrieval.__version__
    assert released == sorted(released, key=lambda version: [*map(int, version.split("."))], reverse=True)


def test_contributing_explains_every_make_target() -> None:
    targets = re.findall(r'@echo "make ([\w-]+)', (ROOT / "Makefile").read_text(encoding="utf-8"))
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `make ([\w-]+)` \|", text, re.MULTILINE) == targets


def test_a_windows_clone_changes_no_digest() -> None:
    rules = (ROOT / ".gitattributes").read_text(encoding="utf-8").splitlines()
    assert {"* text=auto eol=lf", "fixtures/** -text", "evidence/** -text", "notebooks/** -text"} <= set(rules)
