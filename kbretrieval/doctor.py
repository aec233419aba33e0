"""`kbretrieval doctor`: what is here, what is missing, and the one command that mends it.

Runs on the standard library alone (`python -m kbretrieval.doctor`), because a missing package is what it is for. It
looks and changes nothing; it does not say whether a search is right, only whether one can run.
"""

import argparse
import importlib.metadata
import json
import re
import sqlite3
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from kbretrieval._version import __version__
from kbretrieval.book.glyphs import FONT_FAMILY, FONT_FILE
from kbretrieval.model.files import check_folder, model_folder
from kbretrieval.store.probe import has_fts5, has_strict

SCHEMA = "kbretrieval.doctor/1"
OLDEST_PYTHON = (3, 11)
OLDEST_UNICODE = (14, 0)
EXTRAS = ("bge", "book", "dev")
KERNEL = "python3"
NAMED_PACKAGES = 8
CHECKOUT = Path(__file__).resolve().parent.parent

ANOTHER_PYTHON = "conda env create -f environment.yml"
FETCH = "kbretrieval model fetch"
INSTALL_KERNEL = f"python -m ipykernel install --sys-prefix --name {KERNEL}"

State = Literal["ok", "missing", "wrong"]
_NEED = re.compile(r"(?P<name>[\w.-]+)(?:\[[^\]]*\])?\s*\(?(?:>=\s*(?P<oldest>[\d.]+))?[^;]*(?:;(?P<marker>.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*["']([\w-]+)["']""")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `needed` says whether the core needs it, `mend` is empty where nothing is wrong."""

    name: str
    state: State
    found: str
    needed: bool
    mend: str = ""

    def line(self) -> str:
        """Return the finding as one line for a reader."""
        mend = f"    run: {self.mend}" if self.mend else ""
        return f"{self.state:<8} {self.name:<22} {self.found}{mend}"


def _judged(name: str, state: State, found: str, mend: str, *, needed: bool) -> Finding:
    return Finding(name, state, found, needed, "" if state == "ok" else mend)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0]))


def install_command(extra: str = "") -> str:
    """Return the command that installs the package, with an extra if one is named: this checkout, or the wheel."""
    in_checkout = (CHECKOUT / "pyproject.toml").is_file()
    if not extra:
        # By the file's name: the package is on no index, and whatever bore its name there would be somebody else's.
        return f"python -m pip install {'-e .' if in_checkout else f'kbretrieval-{__version__}-py3-none-any.whl'}"
    place = "-e ." if in_checkout else "kbretrieval"
    option, _, name = place.rpartition(" ")
    # Double quotes work in every shell, the one of Windows included; bare brackets do not.
    return " ".join(["python -m pip install", *filter(None, [option]), f'"{name}[{extra}]"'])


def check_python(version: Sequence[int] = sys.version_info[:3]) -> Finding:
    """Return whether this Python is new enough.

    Example:
        >>> check_python((3, 9, 2)).state
        'wrong'
    """
    state: State = "ok" if tuple(version[:2]) >= OLDEST_PYTHON else "wrong"
    return _judged("python", state, ".".join(map(str, version)), ANOTHER_PYTHON, needed=True)


def check_sqlite() -> tuple[Finding, ...]:
    """Return what the SQLite of this Python is and can do; FTS5 and STRICT tables are tried, not assumed."""
    version = Finding("sqlite", "ok", sqlite3.sqlite_version, True)
    probes = (("sqlite FTS5", has_fts5), ("sqlite STRICT tables", has_strict))
    tried = [(name, probe()) for name, probe in probes]
    return version, *(
        _judged(name, "ok" if works else "missing", "works" if works else "refused", ANOTHER_PYTHON, needed=True)
        for name, works in tried
    )


def check_unicode(version: str = unicodedata.unidata_version) -> Finding:
    """Return the Unicode version of Python's tables; the contract of an index stores the cutter's beside it."""
    state: State = "ok" if _numbers(version) >= OLDEST_UNICODE else "wrong"
    return _judged("unicode", state, version, ANOTHER_PYTHON, needed=True)


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_package(installed: Callable[[str], str | None] = _installed) -> Finding:
    """Return whether the distribution is installed in this Python, and in the version that runs."""
    found = installed("kbretrieval")
    state: State = "missing" if found is None else "ok" if found == __version__ else "wrong"
    said = found if found in (None, __version__) else f"{found} installed, {__version__} runs"
    return _judged("kbretrieval", state, said or "not installed", install_command(), needed=True)


def check_requirements(
    lines: Iterable[str], extra: str = "", installed: Callable[[str], str | None] = _installed
) -> Finding:
    """Return the state of the packages of one extra, of the core without; `wrong` is older than what is declared.

    Example:
        >>> check_requirements(["no-such-package>=1.0"]).found
        'no-such-package is not installed'
    """
    absent, old, there = [], [], []
    for line in lines:
        need = _NEED.match(line)
        marker = _EXTRA.search(need["marker"] or "") if need else None
        if need is None or (marker[1] if marker else "") != extra:
            continue
        version = installed(need["name"])
        if version is None:
            absent.append(f"{need['name']} is not installed")
        elif _numbers(version) < _numbers(need["oldest"] or "0"):
            old.append(f"{need['name']} {version}, {need['oldest']} needed")
        else:
            there.append(f"{need['name']} {version}")
    state: State = "missing" if absent else "wrong" if old else "ok"
    name = f"packages [{extra}]" if extra else "packages"
    said = ", ".join([*absent, *old] or (there if len(there) <= NAMED_PACKAGES else [f"{len(there)} packages"]))
    return _judged(name, state, said, install_command(extra), needed=not extra)


def _kernel_command() -> list[str] | None:
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        return list(KernelSpecManager().get_kernel_spec(KERNEL).argv)
    except (NoSuchKernel, ValueError, OSError):
        return None


def check_kernel() -> Finding:
    """Return whether the kernel that notebooks ask for starts this interpreter."""
    if find_spec("jupyter_client") is None or find_spec("ipykernel") is None:
        return Finding("jupyter kernel", "missing", "no Jupyter here", False, install_command("book"))
    command = _kernel_command()
    if not command:
        return Finding("jupyter kernel", "missing", f"no kernel {KERNEL}", False, INSTALL_KERNEL)
    # A bare name is replaced by the interpreter that runs Jupyter; links inside an environment stay in its folder.
    program = Path(command[0])
    bare = re.fullmatch(r"python(?:3(?:\.\d+)?)?", command[0]) is not None
    same = bare or program.parent.resolve() == Path(sys.executable).parent.resolve()
    found = "this interpreter" if same else "another interpreter"
    return _judged("jupyter kernel", "ok" if same else "wrong", found, INSTALL_KERNEL, needed=False)


def check_font(path: Path = FONT_FILE) -> Finding:
    """Return whether the font of the book's figures is there and readable."""
    in_checkout = (CHECKOUT / ".git").exists()
    mend = "git checkout -- kbretrieval/book/font" if in_checkout else f"{install_command()} --force-reinstall"
    try:
        right = path.read_bytes()[:4] == b"OTTO"
    except OSError:
        return Finding("font", "missing", path.name, False, mend)
    if right and find_spec("matplotlib") is not None:
        from matplotlib.ft2font import FT2Font

        try:
            right = FT2Font(str(path)).family_name == FONT_FAMILY
        except (OSError, RuntimeError):
            right = False
    return _judged("font", "ok" if right else "wrong", path.name, mend, needed=False)


def check_model(folder: Path | None = None) -> tuple[Finding, ...]:
    """Return the state of the two model files; by default where the encoder looks for them."""
    return tuple(
        _judged(f"model {kind}", _state(file.state), file.name, FETCH, needed=False)
        for kind, file in zip(("weights", "tokenizer"), check_folder(folder or model_folder()), strict=True)
    )


def _state(word: str) -> State:
    return "ok" if word == "ok" else "missing" if word == "missing" else "wrong"


def examine() -> tuple[Finding, ...]:
    """Return everything that was looked at, the core first.

    Example:
        >>> examine()[0].name
        'python'
    """
    package = check_package()
    lines = [] if package.state == "missing" else importlib.metadata.requires("kbretrieval") or []
    packages = [check_requirements(lines, extra) for extra in ("", *EXTRAS)] if lines else []
    core = (check_python(), *check_sqlite(), check_unicode(), package)
    return *core, *packages, *check_model(), check_kernel(), check_font()


def core_works(findings: Iterable[Finding]) -> bool:
    """Return whether everything that the core needs is there."""
    return all(finding.state == "ok" for finding in findings if finding.needed)


def report(*, as_json: bool) -> int:
    """Print the findings; returns 0 if the core works, else 1."""
    findings = examine()
    works = core_works(findings)
    if as_json:
        shown = {"schema": SCHEMA, "core_works": works, "findings": [asdict(finding) for finding in findings]}
        print(json.dumps(shown, ensure_ascii=False, indent=2))
    else:
        for finding in findings:
            print(finding.line())
        print("the core works" if works else "the core does not work")
    return 0 if works else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as a command of its own, for an environment in which the command line cannot start."""
    parser = argparse.ArgumentParser(prog="python -m kbretrieval.doctor", description="what is here, what is missing")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    return report(as_json=parser.parse_args(arguments).json)


if __name__ == "__main__":
    sys.exit(main())
