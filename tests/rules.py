"""A pytest plugin with two rules: in CI a skip is a failure, and no test reaches the network.

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
