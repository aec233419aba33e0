"""Fixtures of the unit tests: a fresh index, and three callers of one tenant."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kbretrieval import Context, Index, TermEncoder


@pytest.fixture
def index_path(tmp_path: Path) -> Path:
    """The file of the fixture `index`."""
    return tmp_path / "kb.sqlite"


@pytest.fixture
def index(index_path: Path) -> Iterator[Index]:
    """A fresh index with the term encoder, in a folder of its own."""
    with Index.open(index_path, encoder=TermEncoder()) as opened:
        yield opened


@pytest.fixture
def alice() -> Context:
    """A reader of tenant acme."""
    return Context("acme", "alice")


@pytest.fixture
def bob() -> Context:
    """Another reader of tenant acme."""
    return Context("acme", "bob")


@pytest.fixture
def carol() -> Context:
    """A third reader of tenant acme, in no group."""
    return Context("acme", "carol")
