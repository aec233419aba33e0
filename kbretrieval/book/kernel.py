"""The room a notebook runs in: this interpreter, no network, no settings of the user's, a witness at the door."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager

from kbretrieval.book import loopback, witness

_NAME = "kbretrieval-book"


@dataclass(frozen=True, slots=True)
class KernelRoom:
    """A kernel that is ready to start: its manager, environment and working directory, and the witness's file."""

    manager: AsyncKernelManager
    environment: dict[str, str]
    cwd: Path
    witness: Path
    interpreter: str


def furnish(folder: Path, number: int, hash_seed: str, cwd: Path | None) -> KernelRoom:
    """Return a room below `folder` for the notebook with this number in the run.

    No installed kernel specification is used: one is written that starts `sys.executable`. Jupyter, IPython and
    matplotlib look for settings in empty folders, shared by all rooms of one run; a start-up module on `PYTHONPATH`
    refuses sockets beyond loopback.
    """
    guard, settings = folder / "guard", folder / "settings"
    place = cwd or folder / f"cwd-{number}"
    for needed in (guard, settings, place):
        needed.mkdir(parents=True, exist_ok=True)
    (guard / "sitecustomize.py").write_text(loopback.startup_source(), encoding="utf-8", newline="\n")
    written = folder / f"witness-{number}.jsonl"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(guard), os.environ.get("PYTHONPATH", "")])),
        "PYTHONHASHSEED": hash_seed,
        "PYTHONUTF8": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "IPYTHONDIR": str(settings / "ipython"),
        "JUPYTER_CONFIG_DIR": str(settings / "jupyter"),
        "MPLCONFIGDIR": str(settings / "matplotlib"),
        witness.VARIABLE: str(written),
    }
    for unwanted in ("PYTHONWARNINGS", "PYTHONSTARTUP", "MATPLOTLIBRC", "MPLBACKEND"):
        environment.pop(unwanted, None)
    return KernelRoom(_manager(folder / "kernels"), environment, place, written, sys.executable)


def _manager(folder: Path) -> AsyncKernelManager:
    spec = folder / _NAME
    spec.mkdir(parents=True, exist_ok=True)
    extension = f"--IPKernelApp.extra_extensions={witness.__name__}"
    # The kernel's log would only say that loopback is not encrypted; a witness that fails to load is found by silence.
    quiet = "--IPKernelApp.log_level=ERROR"
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", extension, quiet]
    text = json.dumps({"argv": argv, "display_name": "kbretrieval", "language": "python"})
    (spec / "kernel.json").write_text(text, encoding="utf-8", newline="\n")
    specs = KernelSpecManager(kernel_dirs=[str(folder)], ensure_native_kernel=False)
    return AsyncKernelManager(kernel_name=_NAME, kernel_spec_manager=specs)
