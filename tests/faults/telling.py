"""What a test of faults tells of itself besides passing: how many points, rounds or operations it went through."""

from collections.abc import Callable

Told = Callable[[str, object], None]
"""pytest's `record_property`: name and value; `tools.faults` puts them into the evidence as observed."""
