"""No install, no network, no key, nothing left behind, nothing given away; and no code shared with the index."""

import ast
import json
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

from tests.offline.cases import ARGUMENTS, FIXTURE_PATH, PACKAGE, ROOT, bare_environment, command, python
from tests.offline.marks import promise

WATCHED = f"""
import runpy, sys

def watch(event, arguments):
    if event.startswith(("socket.", "subprocess.", "os.system", "urllib.")):
        raise RuntimeError(event)
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        raise RuntimeError("written file")

sys.addaudithook(watch)
{{first}}
sys.argv = ["offline", "--fixture", {str(FIXTURE_PATH)!r}, *{ARGUMENTS!r}]
runpy.run_module("kbretrieval.offline", run_name="__main__")
"""


class Setup(unittest.TestCase):
    @promise("OFF-1")
    def test_it_runs_without_site_packages_and_without_a_variable(self) -> None:
        run = python(
            *("-m", "kbretrieval.offline", "--fixture", str(FIXTURE_PATH), *ARGUMENTS), flags=("-S", "-E"), env={}
        )
        self.assertEqual((run.returncode, run.stderr), (0, b""))
        self.assertTrue(json.loads(run.stdout))

    @promise("OFF-1")
    def test_it_opens_no_socket_no_process_and_no_file_for_writing(self) -> None:
        run = python("-c", WATCHED.format(first=""), flags=("-S", "-E"))
        self.assertEqual((run.returncode, run.stderr), (0, b""))
        for first in ("import socket; socket.socket()", "open('x', 'w')"):
            with self.subTest(first):
                self.assertIn(b"RuntimeError", python("-c", WATCHED.format(first=first), flags=("-S", "-E")).stderr)

    @promise("OFF-1")
    def test_it_imports_the_standard_library_and_itself(self) -> None:
        for path in sorted(PACKAGE.glob("*.py")):
            for name in _imports(path):
                with self.subTest(f"{path.name}: {name}"):
                    own = name == "kbretrieval.offline" or name.startswith("kbretrieval.offline.")
                    self.assertTrue(own or name.partition(".")[0] in sys.stdlib_module_names)

    def test_only_its_own_modules_of_the_package_are_loaded(self) -> None:
        program = "import kbretrieval.offline.cli, sys; print(*sorted(m for m in sys.modules if 'kbretrieval' in m))"
        loaded = python("-c", program, flags=("-S", "-E")).stdout.decode("ascii").split()
        others = [name for name in loaded if not name.startswith("kbretrieval.offline")]
        self.assertEqual(others, ["kbretrieval", "kbretrieval._version"])

    def test_the_index_does_not_use_it(self) -> None:
        folders = ("store", "channels", "encoders")
        modules = [*(ROOT / "kbretrieval").glob("*.py")]
        modules += [path for folder in folders for path in (ROOT / "kbretrieval" / folder).rglob("*.py")]
        self.assertGreater(len(modules), 1)
        using = [
            path.name for path in modules if any(name.startswith("kbretrieval.offline") for name in _imports(path))
        ]
        self.assertEqual([name for name in using if name != "cli.py"], [])

    @promise("OFF-2")
    def test_it_leaves_nothing_behind(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            shutil.copytree(PACKAGE, folder / "kbretrieval" / "offline", ignore=shutil.ignore_patterns("__pycache__"))
            for module in ("__init__.py", "_version.py"):
                shutil.copy(ROOT / "kbretrieval" / module, folder / "kbretrieval" / module)
            shutil.copy(FIXTURE_PATH, folder / "fixture.json")
            before = _tree(folder)
            run = python(
                *("-W", "error", "-m", "kbretrieval.offline", "--fixture", "fixture.json", *ARGUMENTS),
                flags=("-S",),
                cwd=folder,
                env={name: str(folder) for name in ("HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP")},
            )
            self.assertEqual((run.returncode, run.stderr), (0, b""))
            self.assertEqual(_tree(folder), before)

    @promise("OFF-3")
    def test_the_report_holds_no_credential_and_no_path(self) -> None:
        with tempfile.TemporaryDirectory(prefix="canary-folder-") as name:
            path = Path(name) / "canary-file.json"
            shutil.copy(FIXTURE_PATH, path)
            run = python(
                *("-m", "kbretrieval.offline", "--fixture", str(path), *ARGUMENTS),
                env={"API_KEY": "canary-key", "PASSWORD": "canary-password", "HOME": "canary-home"},
            )
        self.assertEqual(run.returncode, 0)
        self.assertNotIn(b"canary", run.stdout)
        self.assertEqual([text for text in _strings(json.loads(run.stdout)) if set(text) & set("/\\")], [])

    def test_the_documented_command_needs_no_environment_to_be_named(self) -> None:
        self.assertNotIn("PYTHONPATH", bare_environment())
        self.assertEqual(command().returncode, 0)


def _imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found.append(f"{'.' * node.level}{node.module or ''}")
    return found


def _tree(folder: Path) -> list[tuple[str, bytes]]:
    return sorted(
        (path.relative_to(folder).as_posix(), path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
    )


def _strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for key, entry in value.items() for text in (key, *_strings(entry))]
    if isinstance(value, list):
        return [text for entry in value for text in _strings(entry)]
    return [value] if isinstance(value, str) else []


if __name__ == "__main__":
    unittest.main()
