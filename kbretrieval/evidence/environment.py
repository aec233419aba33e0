"""What ran: versions, source digest and processor, for `environment` of an evidence file (EVD-1).

Nothing here is compared exactly by the verifier; it explains a difference after the fact.
"""

import hashlib
import platform
import sqlite3
import unicodedata
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kbretrieval._version import __version__
from kbretrieval.evidence.canonical import Value

PACKAGE_FOLDER = Path(__file__).resolve().parents[1]

# Only what decides which kernels a vector library picks; the full list is long and says no more.
_RELEVANT_FLAGS = frozenset(
    (
        "sse4_2",
        "avx",
        "avx2",
        "fma",
        "f16c",
        "avx512f",
        "avx512bw",
        "avx512vl",
        "avx512_vnni",
        "avx512_bf16",
        "avx512_fp16",
        "avx_vnni",
        "amx_tile",
        "amx_int8",
        "amx_bf16",
        "asimd",
        "asimddp",
        "i8mm",
        "bf16",
        "sve",
        "sve2",
    )
)


def source_sha256(folder: Path = PACKAGE_FOLDER) -> str:
    """Return one digest over every `*.py` below `folder`: names and contents in the order of the names.

    Line ends are counted as LF, so a Windows clone has the same digest. Data files are not covered;
    what a claim depends on there is named as a subject.

    Example:
        >>> len(source_sha256())
        64
    """
    digest = hashlib.sha256()
    for name, path in sorted((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*.py")):
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{name}\n{hashlib.sha256(content).hexdigest()}\n".encode())
    return digest.hexdigest()


def package_versions(names: Iterable[str]) -> dict[str, Value]:
    """Return the installed version of each distribution, None for one that is not installed.

    Example:
        >>> package_versions(["no-such-distribution"])
        {'no-such-distribution': None}
    """
    return {name: _installed(name) for name in sorted(set(names))}


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def cpu(information: Path = Path("/proc/cpuinfo")) -> dict[str, Value]:
    """Return the processor's model and the instruction sets that matter for vectors, sorted.

    Where the system has no such file (macOS, Windows) the model comes from `platform` and the flags
    are empty: unknown, not absent.

    Example:
        >>> sorted(cpu())
        ['flags', 'model']
    """
    fallback = platform.processor() or platform.machine() or "unknown"
    try:
        lines = information.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {"model": fallback, "flags": []}
    found = {name.strip(): text.strip() for name, _, text in (line.partition(":") for line in reversed(lines))}
    flags = set((found.get("flags") or found.get("Features") or "").split())
    named: list[Value] = [*sorted(flags & _RELEVANT_FLAGS)]
    return {"model": found.get("model name") or fallback, "flags": named}


def environment(packages: Iterable[str] = ()) -> dict[str, Value]:
    """Return the `environment` object of an evidence file; `packages` are distribution names.

    Example:
        >>> sorted(environment())
        ['cpu', 'package', 'packages', 'platform', 'python', 'sqlite', 'unidata']
    """
    return {
        "package": {"version": __version__, "source_sha256": source_sha256()},
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "unidata": unicodedata.unidata_version,
        "platform": platform.platform(),
        "cpu": cpu(),
        "packages": package_versions(packages),
    }
