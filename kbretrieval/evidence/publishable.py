"""What must never stand in a published file: absolute paths and secrets (EVD-4).

The rules err towards refusing: a claim can always be written with a path below the project root. They
find the usual forms of a secret, not every secret.
"""

import re
from collections.abc import Iterator

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
    known: dict[str, list[str]] = {}
    found = []
    for place, text in _strings(value, "$"):
        if text not in known:
            known[text] = text_refusals(text)
        found += [f"{place}: {kind}" for kind in known[text]]
    return found


def _strings(value: Value, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _strings(item, f"{place}[{position}]")
    elif isinstance(value, dict):
        for name, item in value.items():
            # A refused key stays out of the report, or the report would publish it.
            key_place = f"{place} (a key)"
            yield key_place, name
            yield from _strings(item, f"{place}.{name}" if not text_refusals(name) else key_place)
