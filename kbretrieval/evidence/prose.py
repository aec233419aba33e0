"""Numbers in prose, bound to evidence (EVD-9).

In Markdown a pair of comments, which a reader does not see, binds what stands between them:

    Recall@3 is <!-- evidence: book-demo.json#/deterministic/aggregates/recall/value -->0.9<!-- /evidence -->.

`; as=percent`, `; as=.2` after the pointer show a decimal as `90%` or with two places. The alternative
text of a picture cannot hold comments; `<!-- evidence-alt: file.json#/pointer, … -->` before the picture
asks that each value stands in the alternative text that follows.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from kbretrieval.evidence.aggregates import fixed
from kbretrieval.evidence.errors import BindingInvalid, JsonInvalid
from kbretrieval.evidence.pointers import resolve
from kbretrieval.evidence.verify import claim_value

_OPEN = r"<!--\s*evidence:\s*(?P<source>[^>]*?)\s*-->"
_BOUND = re.compile(_OPEN + r"(?P<shown>(?:(?!<!--).)*?)<!--\s*/evidence\s*-->", re.DOTALL)
_ANY_MARK = re.compile(r"<!--\s*/?evidence(?:-alt)?\b[^>]*-->")
_ALT = re.compile(r"<!--\s*evidence-alt:\s*(?P<sources>[^>]*?)\s*-->\s*!\[(?P<alt>[^\]]*)\]")
_SOURCE = re.compile(r"(?P<file>[\w.-]+\.json)#(?P<pointer>(?:/[^\s;,]*)?)(?:\s*;\s*as=(?P<form>percent|\.\d))?")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+|(?=%))%?(?![\w.]*\.\d)")
_NOT_PROSE = re.compile(r"```.*?```|`[^`\n]*`|<!--.*?-->|\]\([^)]*\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A bound place whose text is not what the evidence says; `line` counts from 1."""

    line: int
    source: str
    shown: str
    expected: str


def shown_value(folder: Path, source: str) -> str:
    """Return how the value named by `file.json#/pointer[; as=…]` is to stand in prose.

    Raises `BindingInvalid` for another form, a file that cannot be read and a value that is no scalar.

    Example:
        >>> shown_value(Path("no-such-folder"), "a.json#/claim/id")
        Traceback (most recent call last):
        kbretrieval.evidence.errors.BindingInvalid: evidence_binding_invalid: a.json given, FileNotFoundError when read
    """
    named = _SOURCE.fullmatch(source)
    if named is None:
        raise BindingInvalid(f"{source!a} given, file.json#/pointer needed")
    try:
        document = claim_value(folder, named["file"])
    except (OSError, JsonInvalid) as error:
        raise BindingInvalid(f"{named['file']} given, {type(error).__name__} when read") from None
    value = resolve(document, named["pointer"])
    if isinstance(value, list | dict) or value is None:
        raise BindingInvalid(f"{source} given, it names a {type(value).__name__} and not a scalar")
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if named["form"] is None else _formed(text, named["form"])


def _formed(text: str, form: str) -> str:
    try:
        number = Fraction(text)
    except ValueError:
        raise BindingInvalid(f"a value that is not a number given, as={form} needs one") from None
    if form != "percent":
        return fixed(number, int(form[1:]))
    hundred = number * 100
    return f"{hundred.numerator if hundred.denominator == 1 else fixed(hundred, 1)}%"


def check_text(text: str, folder: Path) -> list[Mismatch]:
    """Return every bound place of `text` that differs from the evidence in `folder`.

    Raises `BindingInvalid` for a mark that is not closed, is misspelt or names nothing: a binding that
    binds nothing must not look like one that holds.

    Example:
        >>> check_text("no mark, no mismatch", Path("."))
        []
    """
    found = []
    used = 0
    for match in _BOUND.finditer(text):
        used += 2
        expected = shown_value(folder, match["source"])
        if match["shown"] != expected:
            found.append(Mismatch(_line(text, match), match["source"], match["shown"], expected))
    for match in _ALT.finditer(text):
        used += 1
        for source in re.split(r"\s*,\s*", match["sources"]):
            expected = shown_value(folder, source)
            if not re.search(rf"(?<![\d.]){re.escape(expected)}(?![\d%]|\.\d)", match["alt"]):
                found.append(Mismatch(_line(text, match), source, match["alt"], expected))
    marks = len(_ANY_MARK.findall(text))
    if marks != used:
        raise BindingInvalid(f"{marks} marks given, {used} of them in whole bindings")
    return sorted(found, key=lambda mismatch: (mismatch.line, mismatch.source))


def _line(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start()) + 1


def fill_text(text: str, folder: Path) -> str:
    """Return `text` with what the evidence says in every bound place; alternative texts stay.

    Example:
        >>> fill_text("no mark, no change", Path("."))
        'no mark, no change'
    """

    def filled(match: re.Match[str]) -> str:
        opening = text[match.start() : match.start("shown")]
        return opening + shown_value(folder, match["source"]) + text[match.end("shown") : match.end()]

    return _BOUND.sub(filled, text)


def unbound_numbers(text: str) -> list[str]:
    """Return the decimals and percentages in prose outside every binding, code span and link target.

    Whole numbers are left out: most of them count things that no run decides (chapters, versions).

    Example:
        >>> unbound_numbers("Recall is 0.9, see `0.5`, in 13 queries; 90% of them.")
        ['0.9', '90%']
    """
    return _NUMBER.findall(_NOT_PROSE.sub(" ", _BOUND.sub(" ", text)))
