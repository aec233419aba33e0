"""How long the fault tests run: short in CI, in full with KBRETRIEVAL_FAULTS=full (`make faults`)."""

import os

import pytest


@pytest.fixture(scope="session")
def full() -> bool:
    """True where the gates of the specification are to be reached in full."""
    return os.environ.get("KBRETRIEVAL_FAULTS") == "full"
