"""What must never stand in a published file: absolute paths and secrets (EVD-4).

The rules err towards refusing: a claim can always be written with a path below the project root. They
find the usual forms of a secret, not every secret.
"""

import re
from collections.abc import Iterator, Mapping

from kbretrieval.evidence.canonical import Value

MADE_UP_MARKERS = frozenset({"SECRET-ACME-BOB", "SECRET-BETA"})

_BEFORE = r"(?:^|(?<=[\s\"'`=(\[{,;:>|“”‘’（《：，。、]))"
_PATHS = (
    ("an absolute POSIX path", re.compile(_BEFORE + r"/(?!/)[\w.~-]", re.MULTILINE)),
    ("a file URL", re.compile(r"file:/", re.IGNORECASE)),
    ("a home path", re.compile(_BEFORE + r"~(?:[A-Za-z_][\w.-]*)?[/\\]", re.MULTILINE)),
    ("an absolute Windows path", re.compile(r"(?<![A-Za-z])[A-Za-z]:[\\/]")),
    ("a Windows share", re.compile(r"(?<!\\)\\\\[\w.?$-]+\\")),
)
_MARKER = re.compile(r"SECRET-[A-Z0-9]+(?:-[A-Z0-9]+)*")
_SECRETS = (
    ("a PEM block", re.compile(r"-----BEGIN [A-Z0-9 ]+-----")),
    ("a code host token", re.compile(r"\b(?:gh[oprsu]_[A-Za-z0-9]{30,}|github_pat_\w{30,}|glpat-[\w-]{20,})")),
    ("a model hub token", re.compile(r"\bhf_[A-Za-z0-9]{30,}")),
    ("an API key", re.compile(r"\b(?:sk-[\w-]{20,}|AIza[\w-]{30,}|pypi-[\w-]{30,}|xox[abeoprs]-[\w-]{10,})")),
    ("a cloud access key", re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")),
    ("a JSON web token", re.compile(r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]+")),
    ("a bearer token", re.compile(r"\bBearer\s+[\w.~+/-]{16,}", re.IGNORECASE)),
    (
        "a named secret",
        re.compile(
            r"\b(?:password|passwd|api[_-]?key|access[_-]?token|client[_-]?secret)\b[\"']?\s*[=:]\s*\S{8,}", re.I
        ),
    ),
    ("credentials in a URL", re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]+@", re.IGNORECASE)),
)

# Every form above holds one of these marks, or 15 characters of a token; what is small letters and digits from end to
# end (a digest, a field's name) has none of them. A claim has tens of thousands of strings, and one look is enough.
_SUSPECT = re.compile(r"(?![a-z0-9]+\Z)(?s:.*?)(?:[/\\=:]|SECRET-|-----BEGIN|[\w.~+-]{15})")


def text_refusals(text: str) -> list[str]:
    """Return what `text` must not hold, in words, one per kind; never the text itself.

    Example:
        >>> text_refusals("和/或, 1/2, https://example.org/a"), text_refusals("see (/srv/a)")
        ([], ['an absolute POSIX path'])
    """
    return every_refusal(text) if _SUSPECT.match(text) else []


def column_refusals(text: str) -> list[str]:
    """Return the same for a table without quoted columns: each word once, since a TREC file repeats its words.

    Example:
        >>> column_refusals("q1 Q0 /" + "srv/a 1 2 tag")
        ['an absolute POSIX path']
    """
    return text_refusals("\n".join(dict.fromkeys(text.split())))


def every_refusal(text: str) -> list[str]:
    """Return the same as `text_refusals`, by trying every form.

    Example:
        >>> every_refusal("see (/" + "srv/a)")
        ['an absolute POSIX path']
    """
    found = [name for name, pattern in (*_PATHS, *_SECRETS) if pattern.search(text)]
    if set(_MARKER.findall(text)) - MADE_UP_MARKERS:
        found.append("a secret marker that is not one of the fixtures'")
    return found


def value_refusals(value: Value) -> list[str]:
    """Return `place: kind` for every key and string in `value` that must not be published.

    Example:
        >>> value_refusals({"argv": ["python", "/srv/run.py"]})
        ['$.argv[1]: an absolute POSIX path']
    """
    refused = {text: kinds for text in _texts(value) if (kinds := text_refusals(text))}
    if not refused:  # as nearly always: places are worked out only where there is something to say of one
        return []
    return [f"{place}: {kind}" for place, text in _places(value, "$", refused) for kind in refused.get(text, ())]


def _texts(value: Value) -> set[str]:
    """Every distinct key and string of a value."""
    found, left = set[str](), [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            found.add(item)
        elif isinstance(item, list):
            left += item
        elif isinstance(item, dict):
            found.update(item)
            left += item.values()
    return found


def _places(value: Value, place: str, refused: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _places(item, f"{place}[{position}]", refused)
    elif isinstance(value, dict):
        for name, item in value.items():
            # A refused key stays out of the report, or the report would publish it.
            key_place = f"{place} (a key)"
            yield key_place, name
            yield from _places(item, key_place if name in refused else f"{place}.{name}", refused)
