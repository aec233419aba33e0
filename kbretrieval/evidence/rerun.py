"""Run a claim again without network and compare its deterministic part byte for byte (EVD-6); its words as well.

Only two kinds of command are started: `python -m kbretrieval…` and `notebook <path>.ipynb`, since an
evidence file may come from anybody. The run happens in a process of its own, in the project root, with
an empty evidence folder of its own. Python's own sockets may reach the loopback only; code that opens
sockets below Python (a native library) is not held back by this.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from kbretrieval.evidence.canonical import canonical_bytes
from kbretrieval.evidence.errors import JsonInvalid, RerunRefused, SubjectInvalid
from kbretrieval.evidence.subjects import FOLDER_VARIABLE, check_name
from kbretrieval.evidence.verify import Finding, claim_value

_MODULE = re.compile(r"kbretrieval(?:\.[A-Za-z_]\w*)*")

# An audit hook sees every socket that Python opens and cannot be taken out again by the code it
# watches; as `sitecustomize` it also reaches the kernel that runs a notebook.
_OFFLINE = """\
import ipaddress
import sys


def _is_local(host):
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _offline(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        target = arguments[1]
        refused = isinstance(target, tuple) and not _is_local(target[0])
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        refused = not _is_local(arguments[0])
    else:
        return
    if refused:
        raise PermissionError("network_refused: a host beyond the loopback given, a rerun is offline")


sys.addaudithook(_offline)
"""

_NOTEBOOK = """\
import sys, nbformat
from nbclient import NotebookClient
from pathlib import Path

path = Path(sys.argv[1])
notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
NotebookClient(notebook, timeout=None, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}).execute()
"""  # noqa: E501


def command(argv: list[str], root: Path, output: Path) -> list[str]:
    """Return the command to start for a recorded `argv`, with `{output}` filled in.

    Raises `RerunRefused` for every other kind of command.

    Example:
        >>> command(["sh", "-c", "true"], Path(), Path())
        Traceback (most recent call last):
        kbretrieval.evidence.errors.RerunRefused: evidence_rerun_refused: command 'sh' given, 'python -m kbretrieval…' or 'notebook' needed
    """  # noqa: E501
    if argv[0] == "notebook" and len(argv) == 2 and argv[1].endswith(".ipynb"):
        try:
            check_name(argv[1])
        except SubjectInvalid as error:
            raise RerunRefused(error.detail) from None
        return [sys.executable, "-c", _NOTEBOOK, str(root / argv[1])]
    if argv[:2] == ["python", "-m"] and len(argv) > 2 and _MODULE.fullmatch(argv[2]):
        return [sys.executable, *(part.replace("{output}", str(output)) for part in argv[1:])]
    raise RerunRefused(f"command {argv[0]!a} given, 'python -m kbretrieval…' or 'notebook' needed")


def rerun(folder: Path, claim: str, root: Path, timeout: float = 600.0) -> list[Finding]:
    """Run `claim` again and return what differs; an empty list says the deterministic part is equal.

    `timeout` is in seconds. A run that cannot be started, ends with an error or skips a check that the
    stored run executed could not be checked; a different deterministic part fails.

    Example:
        >>> rerun(Path("no-such-folder"), "no-such-claim", Path())[0].outcome
        'unchecked'
    """
    name = claim if claim.endswith(".json") else f"{claim}.json"
    try:
        stored = _document(folder, name)
    except (OSError, JsonInvalid) as error:
        return [Finding("rerun", "unchecked", f"{name} cannot be read: {type(error).__name__}")]
    with tempfile.TemporaryDirectory(prefix="kbretrieval-rerun-") as temporary:
        output = Path(temporary) / "evidence"
        try:
            ended = _start(stored["invocation"]["argv"], root, Path(temporary), output, timeout)
        except RerunRefused as error:
            return [Finding("rerun", "unchecked", error.detail)]
        except subprocess.TimeoutExpired:
            return [Finding("rerun", "unchecked", f"no end after {timeout:g} s")]
        if ended.returncode != 0:
            refuted = "evidence_check_failed" in ended.stderr
            detail = f"status {ended.returncode} given, 0 needed: {_last_line(ended.stderr)}"
            return [Finding("rerun", "fails" if refuted else "unchecked", detail)]
        try:
            return _compared(stored, _document(output, name))
        except (OSError, JsonInvalid) as error:
            return [Finding("rerun", "unchecked", f"the run wrote no readable {name}: {type(error).__name__}")]


def _document(folder: Path, name: str) -> dict[str, Any]:
    value = claim_value(folder, name)
    if not isinstance(value, dict):
        raise JsonInvalid(f"a {type(value).__name__} given, an object needed")
    return value


def _start(
    argv: list[str], root: Path, temporary: Path, output: Path, timeout: float
) -> subprocess.CompletedProcess[str]:
    hook = temporary / "offline"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(_OFFLINE, encoding="utf-8", newline="\n")
    paths = [str(hook), str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    settings = {
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONUTF8": "1",
        "HF_HUB_OFFLINE": "1",
        FOLDER_VARIABLE: str(output),
    }
    return subprocess.run(
        command(argv, root, output),
        cwd=root,
        env={**os.environ, **settings},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=timeout,
        check=False,
    )


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else "no message"


def _compared(stored: dict[str, Any], again: dict[str, Any]) -> list[Finding]:
    if again["tests"]["skipped"] and not stored["tests"]["skipped"]:
        skipped = again["tests"]["skipped"][0]
        return [Finding("rerun", "unchecked", f"{skipped['name']} was skipped: {skipped['reason']}")]
    if stored["claim"] != again["claim"]:
        return [Finding("rerun", "fails", "the run claims something else: another sentence, chapter or promise")]
    if stored["tests"]["passed"] != again["tests"]["passed"] and not stored["tests"]["skipped"]:
        return [Finding("rerun", "fails", "the run made other checks than the stored file names")]
    before, after = canonical_bytes(stored["deterministic"]), canonical_bytes(again["deterministic"])
    if before == after:
        return []
    at = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)))
    return [Finding("rerun", "fails", f"{len(before)} bytes stored, {len(after)} made, different from byte {at}")]
