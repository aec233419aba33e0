"""Fixtures and settings that the suites share."""

import os
import sys
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from kbretrieval.encoders.bge import BGEEncoder
from kbretrieval.model.files import check_folder
from kbretrieval.model.files import model_folder as default_model_folder
from tests.rules import SHARED_ABSENT

ROOT = Path(__file__).resolve().parent.parent

# The same examples in every run: a failure that cannot be repeated is of no use to a reader. Nor is one that comes from
# a busy machine: how long examples take to draw is not judged either.
settings.register_profile(
    "deterministic", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("deterministic")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Leave the coverage tracer out of slow tests and property tests: other tests reach once what these reach often.

    The mark `no_cover` of pytest-cov does the same, but for the fixtures, and not in a worker of pytest-xdist.
    """
    often = getattr(getattr(item, "function", None), "is_hypothesis_test", False)
    if not often and item.get_closest_marker("slow") is None:
        return (yield)
    tracer = sys.gettrace()
    sys.settrace(None)
    try:
        return (yield)
    finally:
        sys.settrace(tracer)


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder ``shared`` beside the checkout with public test sets and the book's outputs; skips if absent."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip(f"{SHARED_ABSENT} there is no folder ../shared beside the checkout")
    return folder


def _without_model(reason: str) -> None:
    """Fail in CI, on every system; elsewhere skip and name the command that brings what is missing (MOD-4)."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"in CI the model must be here: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def model_folder() -> Path:
    """The folder of the two verified model files; without them the test is skipped, and fails in CI."""
    absent = [name for name in ("onnxruntime", "tokenizers") if find_spec(name) is None]
    if absent:
        _without_model(f"{' and '.join(absent)} not installed: run `python -m pip install -e '.[bge]'`")
    folder = default_model_folder()
    if any(file.state != "ok" for file in check_folder(folder)):
        _without_model("the model is not on this machine: run `kbretrieval model fetch`")
    return folder


@pytest.fixture(scope="session")
def bge(model_folder: Path) -> BGEEncoder:
    """The real encoder, loaded once for all tests; it keeps no state between calls."""
    return BGEEncoder(model_folder)
