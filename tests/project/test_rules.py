"""The rules of tests/rules.py, each seen to bite: in an empty folder, with a pytest of its own."""

import socket
import sys

import pytest

from tests.rules import SHARED_ABSENT, NetworkRefused, is_loopback

SKIPPING = {
    "call": "import pytest\ndef test_x(): pytest.skip('no reason')",
    "mark": "import pytest\n@pytest.mark.skip(reason='no reason')\ndef test_x(): pass",
    "fixture": "import pytest\n@pytest.fixture\ndef f(): pytest.skip('no reason')\ndef test_x(f): pass",
    "module": "import pytest\npytest.skip('no reason', allow_module_level=True)",
    "import": "import pytest\npytest.importorskip('a_package_that_is_absent')",
    "unittest": "import unittest\nclass T(unittest.TestCase):\n    def test_x(self): self.skipTest('no reason')",
    "xfail": "import pytest\n@pytest.mark.xfail(reason='no reason')\ndef test_x(): raise ValueError",
}


def _outcome(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, source: str, ci: str) -> int:
    monkeypatch.setenv("CI", ci)
    pytester.makepyfile(source)
    return int(pytester.runpytest_inprocess("-p", "tests.rules", "-p", "no:cacheprovider").ret)


@pytest.mark.skipif(sys.platform != "linux", reason="the rule is for CI on Linux")
@pytest.mark.parametrize("source", SKIPPING.values(), ids=SKIPPING)
def test_a_skip_is_a_failure_in_ci(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    failed = {pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED}
    assert _outcome(pytester, monkeypatch, source, ci="true") in failed


@pytest.mark.skipif(sys.platform != "linux", reason="the rule is for CI on Linux")
def test_the_rules_hold_in_a_worker(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    refused = "import socket\ndef test_y():\n    socket.create_connection(('203.0.113.7', 9), 0.01)"
    pytester.makepyfile(test_call=SKIPPING["call"], test_module=SKIPPING["module"], test_network=refused)
    plugins = ("-p", "xdist", "-p", "tests.rules", "-p", "no:cacheprovider")
    ran = pytester.runpytest_subprocess(*plugins, "-n", "1", "--continue-on-collection-errors")
    ran.assert_outcomes(failed=2, errors=1)
    assert ran.stdout.str().count("a skip is a failure in CI: Skipped: no reason") >= 2
    assert "NetworkRefused" in ran.stdout.str()


@pytest.mark.parametrize("kind", ["call", "mark", "fixture", "module", "xfail"])
def test_a_skip_is_a_skip_elsewhere(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    none = pytest.ExitCode.NO_TESTS_COLLECTED if kind == "module" else pytest.ExitCode.OK
    assert _outcome(pytester, monkeypatch, SKIPPING[kind], ci="") == none


def test_absent_test_data_may_skip_in_ci(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    source = f"import pytest\ndef test_x(): pytest.skip({SHARED_ABSENT + ' none here'!r})"
    assert _outcome(pytester, monkeypatch, source, ci="true") == pytest.ExitCode.OK


# 203.0.113.0/24, 2001:db8::/32 and .invalid are reserved for documentation: if the guard fails, nobody is called.
@pytest.mark.parametrize("host", ["203.0.113.7", "example.invalid"])
@pytest.mark.parametrize("call", ["connect", "connect_ex"])
def test_no_connection_leaves_the_machine(call: str, host: str) -> None:
    with socket.socket() as end:
        end.settimeout(0.01)
        with pytest.raises(NetworkRefused, match="loopback interface only"):
            getattr(end, call)((host, 9))


def test_no_datagram_leaves_the_machine() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as end, pytest.raises(NetworkRefused):
        end.sendto(b"x", ("203.0.113.7", 9))


@pytest.mark.parametrize("call", ["getaddrinfo", "gethostbyname", "gethostbyname_ex"])
def test_no_name_is_looked_up(call: str) -> None:
    arguments = ("example.invalid", 9) if call == "getaddrinfo" else ("example.invalid",)
    with pytest.raises(NetworkRefused):
        getattr(socket, call)(*arguments)


def test_loopback_still_works() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        peer, _ = server.accept()
        with peer:
            client.sendall(b"here")
            assert peer.recv(4) == b"here"


LOOPBACK = ("127.0.0.1", "127.9.9.9", "::1", "localhost", b"localhost", "", None)
BEYOND = ("203.0.113.7", "2001:db8::1", "fe80::1%eth0", "localhost.invalid", b"example.invalid")


@pytest.mark.parametrize("host", LOOPBACK)
def test_loopback_hosts(host: object) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", BEYOND)
def test_hosts_beyond_loopback(host: object) -> None:
    assert not is_loopback(host)


LEAVING = """
from leaky import settings
def test_changes(): {}
"""
LEAKS = {
    "settings.BOUND = 1": "leaky.settings.BOUND",
    "settings.Reader.read = None": "leaky.settings.Reader.read",
}


def _left(pytester: pytest.Pytester, change: str, *after: str) -> pytest.RunResult:
    pytester.mkpydir("leaky").joinpath("settings.py").write_text("BOUND = 2\nclass Reader:\n    def read(self): pass\n")
    pytester.makeini("[pytest]\nwatched_package = leaky")
    pytester.syspathinsert()
    sources = {"test_first": LEAVING.format(change)} | dict.fromkeys(after, "def test_other(): pass")
    pytester.makepyfile(**sources)
    return pytester.runpytest_subprocess("-p", "tests.rules", "-p", "no:cacheprovider")


@pytest.mark.parametrize("change", LEAKS)
@pytest.mark.parametrize("after", [(), ("test_second",)])
def test_no_file_leaves_the_package_changed(pytester: pytest.Pytester, change: str, after: tuple[str, ...]) -> None:
    ran = _left(pytester, change, *after)
    ran.assert_outcomes(passed=1 + len(after), errors=1)
    assert f"test_first.py left the package changed for the tests of other files: {LEAKS[change]}" in ran.stdout.str()


def test_what_is_put_back_is_no_change(pytester: pytest.Pytester) -> None:
    source = "import unittest.mock as m; m.patch.object(settings, 'BOUND', 3).start(); m.patch.stopall()"
    _left(pytester, source, "test_second").assert_outcomes(passed=2)
