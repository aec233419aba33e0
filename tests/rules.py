"""A pytest plugin with three rules: in CI a skip fails, no test reaches the network, none leaves the package changed.

It is loaded by the root ``conftest.py``, so it also covers the doctests, and by the tests of these rules, which start
pytest in an empty folder with ``-p tests.rules``.
"""

import ipaddress
import os
import socket
import sys
from collections.abc import Callable, Generator
from typing import Any

import pytest

SHARED_ABSENT = "external test data absent:"
"""Beginning of the one reason for which a test may be skipped in CI."""


def skips_fail() -> bool:
    """True in continuous integration on Linux, the one platform where every tool of the suite can be installed."""
    return os.environ.get("CI") == "true" and sys.platform == "linux"


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if not report.skipped or not skips_fail():
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if SHARED_ABSENT in reason:
        return
    report.outcome = "failed"
    report.longrepr = f"{report.nodeid}: a skip is a failure in CI: {getattr(report, 'wasxfail', '') or reason}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skipped (or expected to fail) test into a failed one where ``skips_fail()``."""
    report = yield
    _refuse_skip(report)
    if report.failed and hasattr(report, "wasxfail") and skips_fail():
        del report.wasxfail  # or the reporter would go on calling it an expected failure
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Turn a module that skips itself as a whole into a collection error where ``skips_fail()``."""
    report = yield
    _refuse_skip(report)
    return report


class NetworkRefused(RuntimeError):
    """A test tried to leave the machine; not an ``OSError``, so that no retry loop swallows it."""


def is_loopback(host: object) -> bool:
    """True for ``localhost``, 127.0.0.0/8, ::1, and the empty name that binds or resolves locally."""
    if isinstance(host, bytes | bytearray):
        host = bytes(host).decode("ascii", errors="replace")
    if host is None or host in {"", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(str(host).partition("%")[0]).is_loopback
    except ValueError:
        return False


def _check(address: object) -> None:
    # A tuple is an internet address; Unix sockets are named by strings or bytes and stay on the machine.
    if isinstance(address, tuple) and not is_loopback(address[0]):
        raise NetworkRefused(f"tests use the loopback interface only, not {address[0]!r}")


def _guard_method(original: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(self: socket.socket, *arguments: Any) -> Any:
        _check(arguments[-1])
        return original(self, *arguments)

    return guarded


def _guard_lookup(original: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(host: Any, *arguments: Any, **options: Any) -> Any:
        _check((host,))
        return original(host, *arguments, **options)

    return guarded


_Names = dict[tuple[str, str], object]
_BEFORE = pytest.StashKey[_Names]()


def package_names(package: str) -> _Names:
    """What every name of every loaded module of the package, and of its classes, stands for."""
    found: _Names = {}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == package and module is not None:
            for attribute, value in list(vars(module).items()):
                found[name, attribute] = value
                if isinstance(value, type) and value.__module__ == name:
                    found |= {(f"{name}.{attribute}", key): each for key, each in vars(value).items()}
    return found


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the tests of the third rule watch a package of their own."""
    parser.addini("watched_package", "the package that no test file may leave changed", default="kbretrieval")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember the package as it is before the first test of a file."""
    if _BEFORE not in item.config.stash:
        item.config.stash[_BEFORE] = package_names(item.config.getini("watched_package"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """After the last test of a file, fail if a name of the package stands for something else than before it."""
    yield
    if nextitem is not None and nextitem.path == item.path:
        return
    before = item.config.stash.get(_BEFORE, None)
    if before is None:
        return  # every test of the file was skipped by its mark, before anything was remembered
    now = package_names(item.config.getini("watched_package"))
    del item.config.stash[_BEFORE]
    left = sorted(".".join(name) for name, value in before.items() if name in now and now[name] is not value)
    if left:
        pytest.fail(f"{item.path.name} left the package changed for the tests of other files: {', '.join(left)}")


_GUARD = pytest.StashKey[pytest.MonkeyPatch]()


def pytest_configure(config: pytest.Config) -> None:
    """Refuse connections, datagrams and name look-ups beyond loopback in this process, from now to the end."""
    guard = config.stash[_GUARD] = pytest.MonkeyPatch()
    for name in ("connect", "connect_ex", "sendto"):
        guard.setattr(socket.socket, name, _guard_method(getattr(socket.socket, name)))
    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
        guard.setattr(socket, name, _guard_lookup(getattr(socket, name)))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Put the original functions back."""
    config.stash[_GUARD].undo()
