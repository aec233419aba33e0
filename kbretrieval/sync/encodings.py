"""Bytes → text without a guess (SYN-2).

A byte order mark decides; else a rule for the path; else it is UTF-8; else the one encoding that the reader named. GB
18030 decodes Korean, Japanese and Big5 bytes without complaint, so nothing is ever tried out.
"""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

from kbretrieval.errors import UnsupportedEncoding
from kbretrieval.sync.patterns import PathPattern

# That of UTF-32 begins like that of UTF-16, and decides nothing: it is one of the encodings that must be named.
_MARKS = (
    *((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, None)),
    *((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")),
)
# Not texts of a document, or another text on another machine.
_UNSUITABLE = {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape", "mbcs", "oem"}
_ORDER_UNKNOWN = {"utf-16", "utf-32"}


def checked_encoding(name: str) -> str:
    """Return Python's name of a text encoding, or raise `unsupported_encoding`.

    Example:
        >>> checked_encoding("GBK")
        'gbk'
    """
    found = _known(name)
    if found is None or found in _UNSUITABLE:
        raise UnsupportedEncoding("the name of a text encoding is required, another name given")
    if found in _ORDER_UNKNOWN:
        raise UnsupportedEncoding(f"{found}-le or {found}-be is required, {found} given: the order of bytes is unknown")
    return found


def _known(name: str) -> str | None:
    try:
        found = codecs.lookup(name).name
        _decoded(b"a", found)  # refused by those that turn bytes into bytes, or texts into texts
    except (LookupError, ValueError):
        return None
    return found


@dataclass(frozen=True, slots=True)
class Encodings:
    """How files are decoded: rules of pattern and encoding, the last that matches decides, and one for the rest.

    The rest are files that no rule names and that are neither UTF-8 nor UTF-16 with its mark. Raises
    `unsupported_encoding` for a name that Python does not know, or whose meaning depends on the machine.

    Example:
        >>> Encodings(rest="gb18030").decoded("年假".encode("gb18030"), "旧/年假.txt")
        '年假'
    """

    rules: tuple[tuple[PathPattern, str], ...] = ()
    rest: str | None = None

    def __post_init__(self) -> None:
        for name in (*(name for _, name in self.rules), *([] if self.rest is None else [self.rest])):
            checked_encoding(name)

    @classmethod
    def parse(cls, given: Sequence[str]) -> "Encodings":
        """Return what options say, each `NAME` or `PATTERN=NAME`; raises `unsupported_encoding`, `invalid_parameter`.

        Example:
            >>> Encodings.parse(["gbk", "jp/**=shift_jis"]).rest
            'gbk'
        """
        rules, rest = [], None
        for option in given:
            pattern, equals, name = option.rpartition("=")
            if equals:
                rules.append((PathPattern(pattern), checked_encoding(name)))
            else:
                rest = checked_encoding(name)
        return cls(tuple(rules), rest)

    def decoded(self, raw: bytes, path: str) -> str:
        """Return the text of a file, or raise `unsupported_encoding`; a mark of UTF-8 stays for the projection."""
        marked = next((name for mark, name in _MARKS if raw.startswith(mark)), None)
        ruled = next((name for pattern, name in reversed(self.rules) if pattern.matches(path)), None)
        wanted = marked or ruled
        text, at = _decoded(raw, wanted or "utf-8")
        if text is None and wanted is None and self.rest is not None:
            wanted = self.rest
            text, at = _decoded(raw, wanted)
        if text is None:
            said = wanted or "UTF-8, UTF-16 with its mark, or a named encoding"
            raise UnsupportedEncoding(f"{said} is required, byte {at} is none")
        return text


def _decoded(raw: bytes, name: str) -> tuple[str | None, int]:
    # A value instead of an exception: the decoder's error holds the bytes, and would stay reachable as context (ERR-1).
    try:
        return raw.decode(name), 0
    except UnicodeError as error:
        return None, getattr(error, "start", 0)
