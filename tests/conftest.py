"""Fixtures and settings that the suites share."""

from pathlib import Path

import pytest
from hypothesis import settings

from tests.rules import SHARED_ABSENT

ROOT = Path(__file__).resolve().parent.parent

# The same examples in every run: a failure that cannot be repeated is of no use to a reader.
settings.register_profile("deterministic", derandomize=True, deadline=None, database=None)
settings.load_profile("deterministic")


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
