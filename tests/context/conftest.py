"""A place with documents, collections and releases, on which every test of task contexts begins."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.context.place import Place, opened_place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Three documents that alice may read in two collections, and one that she may not."""
    with opened_place(tmp_path / "kb.sqlite") as made:
        yield made
