"""What a reader sees when a cell stops: compared values, or a refusal in three lines, instead of a traceback."""

import linecache
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from kbretrieval.book.failing import explain, install
from kbretrieval.errors import KBError, StaleAclRevision
from kbretrieval.evidence.errors import CheckFailed

SETUP = "def fetch():\n    calls.append(1)\n    return 3\n\n\n"


def stopped(source: str, monkeypatch: pytest.MonkeyPatch, **names: Any) -> tuple[BaseException, list[str], Any]:
    """Run a cell until it stops; return the exception, what is shown for it, and the cell's names."""
    monkeypatch.setitem(linecache.cache, "<cell>", (len(source), None, source.splitlines(keepends=True), "<cell>"))
    try:
        exec(compile(source, "<cell>", "exec"), names)
    except (AssertionError, IndexError, KBError, CheckFailed, SystemExit) as error:
        return error, explain(error, error.__traceback__, names), names
    raise LookupError("the cell went through")


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("rows = [1, 2]\nassert rows == [1]", ["第 2 行：assert rows == [1]", "rows → [1, 2]", "[1] → [1]"]),
        ("a, b = 1, 2\nassert (a == 1\n        and b == 1)", ["第 2 行：assert a == 1 and b == 1", "b → 2"]),
        ("a = 2\nassert 0 < len('ab') < a", ["len('ab') → 2", "a → 2"]),
        ("def inner(limit):\n    assert limit\n\n\ninner(0)", ["第 2 行：assert limit", "limit → 0"]),
        ("seen = {'a': 1}\nassert set(seen.values()) == {0}", ["set(seen.values()) → {1}", "{0} → {0}"]),
        ("text = '年' * 500\nassert text == '', '说明'", ["text → '年年"]),
    ],
)
def test_a_failed_assertion_shows_what_it_compared(
    source: str, shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    error, lines, _ = stopped(source, monkeypatch)
    assert isinstance(error, AssertionError) and str(error)
    assert all(part in "\n".join(lines) for part in shown)
    assert lines[0].startswith("断言不成立") and "参数" in lines[-1]
    assert max(map(len, lines)) < 150


def test_a_message_of_its_own_is_kept_and_nothing_runs_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    error, lines, names = stopped(SETUP + "assert fetch() == 4", monkeypatch, calls=[])
    assert names["calls"] == [1] and lines[0] == "断言不成立。第 6 行：assert fetch() == 4" and len(lines) == 2
    assert str(error) == "assert fetch() == 4"
    error, _, _ = stopped("assert not 1, '自己的话'", monkeypatch)
    assert str(error) == "自己的话"


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (StaleAclRevision("ACL revision 1 given, 2 stored"), "包按规则拒绝"),
        (CheckFailed("interval: [0, 63] expected"), "不写证据文件"),
    ],
)
def test_a_coded_refusal_shows_in_three_lines(error: Exception, meaning: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, lines, _ = stopped("x = 1\nraise error", monkeypatch, error=error)
    assert lines[0] == str(error) and lines[1] == "第 2 行：raise error" and meaning in lines[2] and len(lines) == 3


def test_anything_else_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stopped("[][0]", monkeypatch)[1] == []
    assert stopped("raise SystemExit('x')", monkeypatch)[1] == []
    assert stopped("raise AssertionError('a library says so')", monkeypatch)[1] == []
    assert explain(None, None, {}) == []
    with pytest.raises(KBError) as elsewhere:
        raise StaleAclRevision("ACL revision 1 given, 2 stored")
    assert explain(elsewhere.value, elsewhere.value.__traceback__, {}) == []


def test_the_shell_shows_it_and_installing_twice_is_once() -> None:
    shown: list[Any] = []
    names: dict[str, Any] = {}
    shell = SimpleNamespace(showtraceback=lambda *_: shown.append(sys.exc_info()[1]), user_ns=names)
    install(shell)
    wrapped = shell.showtraceback
    install(shell)
    assert shell.showtraceback is wrapped
    linecache.cache["<cell-of-install>"] = (9, None, ["assert []\n"], "<cell-of-install>")
    try:
        exec(compile("assert []", "<cell-of-install>", "exec"), names)
    except AssertionError:
        shell.showtraceback()
    finally:
        del linecache.cache["<cell-of-install>"]
    assert shown[0]._render_traceback_()[0] == "断言不成立。第 1 行：assert []"
