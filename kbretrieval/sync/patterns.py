"""Patterns of paths, with the meaning that they have in a `.gitignore` file (POL-4)."""

import unicodedata
from dataclasses import dataclass, field

from pathspec import GitIgnoreSpec

from kbretrieval.errors import InvalidParameter

MAX_PATTERN = 1024


@dataclass(frozen=True, slots=True)
class PathPattern:
    """One pattern for paths below a root, POSIX separators and NFC.

    Raises `invalid_parameter` for a pattern that can match nothing, and for one that begins with `!`: here the last
    matching rule decides, and a negated one would only hide which.

    Example:
        >>> [PathPattern("policies/**").matches(path) for path in ("policies/hr/leave.md", "old/policies/leave.md")]
        [True, False]
    """

    text: str
    _spec: GitIgnoreSpec = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not 1 <= len(self.text) <= MAX_PATTERN:
            raise InvalidParameter(f"a pattern of 1 to {MAX_PATTERN} code points is required, another value given")
        if self.text.startswith("!"):
            raise InvalidParameter("a pattern without a leading ! is required: the last matching rule decides")
        spec = _compiled(self.text)
        if spec is None or not any(pattern.include for pattern in spec.patterns):
            raise InvalidParameter("a pattern that can match a path is required, one that cannot given")
        object.__setattr__(self, "_spec", spec)

    def matches(self, path: str) -> bool:
        """Return whether the pattern names this path, or a folder above it."""
        return self._spec.match_file(path)


def _compiled(text: str) -> GitIgnoreSpec | None:
    # A line of such a file ends at a line end; what follows one would be a pattern of its own.
    if len(text.splitlines()) != 1:
        return None
    try:
        return GitIgnoreSpec.from_lines([unicodedata.normalize("NFC", text)])
    except ValueError:
        return None
