"""The promise table: complete, true to the tests, and shown on a page that is up to date."""

import re
from pathlib import Path

import pytest

from tests.rules import SHARED_ABSENT
from tools import promises

SPEC = promises.ROOT.parent / "shared" / "spec"
NUMBER = re.compile(r"\b([A-Z]{2,4})-([1-9]\d*)\b(?: to \1-(\d+)\b)?")
NO_SERIES = {"SHA", "UTF"}

SOURCE = """
import pytest
pytestmark = [pytest.mark.slow, pytest.mark.promise("MOD-1")]

@pytest.mark.promise("ACL-1", "ACL-2")
def test_a(): ...

class TestB:
    pytestmark = pytest.mark.promise("CIT-1")

    @pytest.mark.promise("ACL-1")
    @pytest.mark.slow
    async def test_b(self): ...

@pytest.mark.promise("CHK-1")
class TestC: ...

@pytest.mark.parametrize("x", [1, pytest.param(2, marks=pytest.mark.promise("ERR-1"))])
def test_d(x): ...

@promise("OFF-1")
def test_e(): ...

def test_none(): "pytest.mark.promise('NOT-1')"
"""


def _numbers_in(text: str) -> set[str]:
    found = set()
    for letters, first, last in NUMBER.findall(text):
        if letters not in NO_SERIES:
            found |= {f"{letters}-{number}" for number in range(int(first), int(last or first) + 1)}
    return found


def test_marks_are_found_wherever_pytest_allows_them() -> None:
    found = sorted((number, str(carrier)) for number, carrier in promises.carriers_in(SOURCE, "t.py"))
    assert found == [
        ("ACL-1", "t.py::TestB::test_b"),
        ("ACL-1", "t.py::test_a"),
        ("ACL-2", "t.py::test_a"),
        ("CHK-1", "t.py::TestC"),
        ("CIT-1", "t.py::TestB"),
        ("ERR-1", "t.py::test_d"),
        ("MOD-1", "t.py"),
        ("OFF-1", "t.py::test_e"),
    ]


def test_a_number_that_is_computed_is_refused() -> None:
    source = '@pytest.mark.promise("ACL-" + x)\ndef test_a(): ...'
    with pytest.raises(ValueError, match="literal string"):
        list(promises.carriers_in(source, "t.py"))


def test_the_page_is_up_to_date() -> None:
    text = promises.render(promises.read_pages(), promises.find_carriers())
    assert promises.PAGE.read_text(encoding="utf-8") == text, "make promises"


def test_every_number_in_a_mark_exists() -> None:
    known = {number for page in promises.read_pages() for number in page.promises}
    unknown = {number: carriers for number, carriers in promises.find_carriers().items() if number not in known}
    assert not unknown


def test_every_finished_promise_has_a_test() -> None:
    assert not _missing(promises.read_pages(), promises.find_carriers())


def _missing(pages: tuple[promises.Page, ...], carriers: dict[str, tuple[promises.Carrier, ...]]) -> list[str]:
    due = [number for page in pages for number in page.promises if page.must_have_tests(number)]
    return [number for number in due if number not in carriers]


@pytest.mark.parametrize(
    ("status", "finished", "expected"),
    [
        ("finished", (), ["ACL-2", "CIT-1"]),
        ("in_progress", ("ACL",), ["ACL-2"]),
        ("in_progress", (), []),
        ("planned", (), []),
    ],
)
def test_what_a_finished_page_or_series_asks_for(status: str, finished: tuple[str, ...], expected: list[str]) -> None:
    page = promises.Page("p", "P", status, finished, {"ACL-1": "a", "ACL-2": "b", "CIT-1": "c"})
    assert _missing((page,), {"ACL-1": (promises.Carrier("t.py", "test_a"),)}) == expected


@pytest.mark.parametrize(
    ("field", "value"), [("status", '"nearly"'), ("finished", '["XYZ"]')], ids=["status", "series"]
)
def test_a_wrong_table_is_refused(tmp_path: Path, field: str, value: str) -> None:
    fields = {"name": '"p"', "title": '"P"', "status": '"finished"', "finished": "[]", field: value}
    rows = "".join(f"{key} = {text}\n" for key, text in fields.items())
    table = tmp_path / "promises.toml"
    table.write_text(f'[[page]]\n{rows}[page.promises]\nACL-1 = "a"\n', encoding="utf-8", newline="\n")
    with pytest.raises(ValueError, match="page p"):
        promises.read_pages(table)


def test_numbers_stand_once_and_each_line_is_short() -> None:
    pages = promises.read_pages()
    numbers = [number for page in pages for number in page.promises]
    assert len(numbers) == len(set(numbers))
    assert all(NUMBER.fullmatch(number) for number in numbers)
    assert all(0 < len(text) <= 115 for page in pages for text in page.promises.values())


def test_the_table_holds_exactly_the_numbers_of_the_specification(shared: Path) -> None:
    pages = sorted((shared / "spec").glob("*.md"))
    if not pages:
        pytest.skip(f"{SHARED_ABSENT} ../shared holds no specification")
    named = set().union(*(_numbers_in(page.read_text(encoding="utf-8")) for page in pages))
    assert {number for page in promises.read_pages() for number in page.promises} == named


@pytest.mark.skipif(not SPEC.is_dir(), reason=f"{SHARED_ABSENT} ../shared holds no specification")
@pytest.mark.parametrize("page", promises.read_pages(), ids=lambda page: page.name)
def test_each_page_holds_what_the_specification_s_page_defines(page: promises.Page) -> None:
    text = (SPEC / f"{page.name}.md").read_text(encoding="utf-8")
    assert set(page.promises) <= _numbers_in(text)
