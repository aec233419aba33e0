"""A JupyterLab server on loopback: a root of its own, no settings of the user's, this interpreter's kernel."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from kbretrieval.book import loopback
from kbretrieval.evidence.subjects import FOLDER_VARIABLE

START_SECONDS = 60.0
STOP_SECONDS = 20.0
# What a new user is asked in a pop-up, answered: no news, no look for a newer version.
QUIET = {"fetchNews": "false", "checkForUpdates": False}


@dataclass(frozen=True, slots=True)
class Lab:
    """A running server: the folder it serves, its port and its token."""

    root: Path
    port: int
    token: str

    def page(self, name: str) -> str:
        """Return the address that opens a file of the root, in a workspace of its own: no tab of another stays open."""
        place = f"lab/workspaces/{name.partition('.')[0]}/tree/{name}"
        return f"http://127.0.0.1:{self.port}/{place}?token={self.token}"

    def ask(self, path: str) -> Any:
        """Return what the server's interface answers, parsed."""
        asked = Request(f"http://127.0.0.1:{self.port}/{path}", headers={"Authorization": f"token {self.token}"})
        with urlopen(asked, timeout=10) as answer:
            return json.load(answer)


@contextmanager
def serving(folder: Path) -> Iterator[Lab]:
    """Serve `folder/root` for the length of the block; the process that is ended is the one that was started."""
    root = folder / "root"
    root.mkdir(parents=True)
    lab = Lab(root, _free_port(), secrets.token_hex(16))
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--ServerApp.root_dir={root}"]
    command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={lab.port}", "--ServerApp.port_retries=0"]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, env=_environment(folder, lab.token), cwd=root, stdout=log, stderr=log)
        try:
            _wait(lab, server, folder / "server.log")
            yield lab
        finally:
            server.terminate()
            try:
                server.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _environment(folder: Path, token: str) -> dict[str, str]:
    made = {**os.environ, "JUPYTER_TOKEN": token, "PYTHONUTF8": "1", FOLDER_VARIABLE: str(folder / "evidence")}
    for unwanted in ("PYTHONWARNINGS", "PYTHONSTARTUP", "MATPLOTLIBRC", "MPLBACKEND"):
        made.pop(unwanted, None)
    # An empty data folder knows no signature: every notebook arrives untrusted, as one that was downloaded does.
    for name in ("CONFIG", "DATA", "RUNTIME"):
        made[f"JUPYTER_{name}_DIR"] = str(folder / name.lower())
    made["IPYTHONDIR"], made["MPLCONFIGDIR"] = str(folder / "ipython"), str(folder / "matplotlib")
    made["JUPYTERLAB_WORKSPACES_DIR"] = str(folder / "workspaces")
    made["JUPYTERLAB_SETTINGS_DIR"] = str(folder / "settings")
    quiet = folder / "settings" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    _write(quiet, json.dumps(QUIET))
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Python 3 (ipykernel)", "language": "python"}
    _write(folder / "share" / "kernels" / "python3" / "kernel.json", json.dumps(spec))
    made["JUPYTER_PATH"] = str(folder / "share")
    _write(folder / "guard" / "sitecustomize.py", loopback.startup_source())
    made["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder / "guard"), os.environ.get("PYTHONPATH", "")]))
    return made


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(lab: Lab, server: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and server.poll() is None:
        try:
            lab.ask("api/status")
        except (URLError, ConnectionError):
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"no JupyterLab within {START_SECONDS} s:\n{log.read_text(encoding='utf-8')[-2000:]}")
