"""Text → terms, for every script (chapter 5).

Runs of Han, kana, hangul and bopomofo give overlapping bigrams, a run of one the single character; every other run of
letters, digits and `_`, with its marks, is one term. Width and compatibility forms are folded (NFKC) and case is
folded, inside the analyzer only; accents are kept; invisible format characters do not split a word (LEX-1, LEX-2).
Scripts that write without spaces between words, other than those named (Thai, Khmer), stay one term a run.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import islice, pairwise
from operator import add

import numpy as np
import regex
from numpy.typing import NDArray

ANALYZER_VERSION = "bigram-nfkc/1"
MAX_QUERY_TERMS = 64

# Zero-width and other characters that have no shape of their own: they must not hide a word.
_INVISIBLE = regex.compile(
    r"[\p{Cf}\p{Variation_Selector}\u034F\u115F\u1160\u17B4\u17B5\u3164\uFFA0--\u0600-\u0605\u06DD\u070F\u08E2]",
    regex.V1,
)
_IDEOGRAPHIC = r"[[\p{L}\p{Nl}]&&[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Bopomofo}]]"
_TOKEN = regex.compile(
    rf"(?P<ideographs>(?:{_IDEOGRAPHIC}[\p{{Mn}}\p{{Mc}}]*)+)|(?P<word>[[\p{{L}}\p{{N}}_]--{_IDEOGRAPHIC}][[\p{{L}}\p{{N}}\p{{Mn}}\p{{Mc}}_]--{_IDEOGRAPHIC}]*)",
    regex.V1,
)
_MARK = regex.compile(r"[\p{Mn}\p{Mc}]+")
_SINGLE = regex.compile(_IDEOGRAPHIC, regex.V1)


def folded(text: str) -> str:
    """Return the form in which terms are compared: no invisible characters, NFKC, case folded.

    Example:
        >>> folded("ＶＰＮ pass\\u200dword")
        'vpn password'
    """
    compatible = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", compatible.casefold()))


# Most Chinese text is nothing but these. Folding them changes case and the width of punctuation, and no term.
_EVERYDAY = re.compile(
    "[\n\x20-\x7e\u4e00-\u9fff\u3001\u3002\u300a-\u3011\u2014\u2018\u2019\u201c\u201d\u2026"
    "\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f]*"
)
_EVERYDAY_TOKEN = re.compile("[a-z0-9_]+|[\u4e00-\u9fff]+")


def terms(text: str) -> list[str]:
    """Return the terms of a text in order, repeated ones repeated.

    Example:
        >>> terms("住宿发票 E042，500元")
        ['住宿', '宿发', '发票', 'e042', '500', '元']
    """
    if not _EVERYDAY.fullmatch(text):
        return any_terms(text)
    found: list[str] = []
    for run in _EVERYDAY_TOKEN.findall(text.lower()):
        if len(run) == 1 or run[0] < "\x80":
            found.append(run)
        else:
            found.extend(map(add, run, run[1:]))
    return found


def any_terms(text: str) -> list[str]:
    """Return the terms of a text of any script; `terms` gives the same, faster where a text is everyday Chinese.

    Example:
        >>> any_terms("サーバー")
        ['サー', 'ーバ', 'バー']
    """
    found: list[str] = []
    for match in _TOKEN.finditer(folded(text)):
        word = match["word"]
        if word is not None:
            found.append(word)
            continue
        run = _MARK.sub("", match["ideographs"])
        found.extend(map("".join, pairwise(run)) if len(run) > 1 else [run])
    return found


def counted_query_terms(text: str) -> tuple[dict[str, int], int]:
    """Return the first 64 distinct terms of a query with their counts in it, and how many distinct ones it has (LEX-4).

    Example:
        >>> counted_query_terms("退款 退款 政策")
        ({'退款': 2, '政策': 1}, 2)
    """
    counted = Counter(terms(text))
    return dict(islice(counted.items(), MAX_QUERY_TERMS)), len(counted)


def query_terms(text: str) -> tuple[list[str], int]:
    """Return the first 64 distinct terms of a query, and how many distinct ones it has (LEX-4).

    Example:
        >>> query_terms("退款 退款 政策")
        (['退款', '政策'], 2)
    """
    used, given = counted_query_terms(text)
    return list(used), given


def is_single_ideograph(term: str) -> bool:
    """Tell whether a term is one Han, kana, hangul or bopomofo character (LEX-9)."""
    return len(term) == 1 and _SINGLE.fullmatch(term) is not None


_POINT_BITS = 21
_POINT_MASK = (1 << _POINT_BITS) - 1
_LONG = 1 << 62
PACKED = 1 << 2 * _POINT_BITS  # every packed code lies below


def term_code(term: str) -> int:
    """Return a term as a positive 63-bit integer, for posting lists.

    Terms of one and two code points are packed, without loss; longer ones are 62 bits of BLAKE2b under a mark of their
    own. Two long terms could share a code (about one chance in 10^7 among a million of them); bigrams never do.

    Example:
        >>> term_code("住宿") == ord("住") << 21 | ord("宿")
        True
    """
    if len(term) == 1:
        return ord(term)
    if len(term) == 2:
        return ord(term[0]) << _POINT_BITS | ord(term[1])
    return _LONG | int.from_bytes(hashlib.blake2b(term.encode("utf-8"), digest_size=8).digest(), "little") >> 2


def term_codes(found: Sequence[str]) -> NDArray[np.int64]:
    """Return the codes of many terms at once, in no particular order.

    Example:
        >>> sorted(term_codes(["住宿", "宿"])) == sorted([term_code("住宿"), term_code("宿")])
        True
    """
    ones = np.frombuffer("".join(t for t in found if len(t) == 1).encode("utf-32-le"), "<u4").astype(np.int64)
    pairs = np.frombuffer("".join(t for t in found if len(t) == 2).encode("utf-32-le"), "<u4").astype(np.int64)
    longer = np.fromiter((term_code(t) for t in found if len(t) > 2), np.int64)
    return np.concatenate([ones, pairs[0::2] << _POINT_BITS | pairs[1::2], longer])


def codes_hold(codes: NDArray[np.int64], character: str) -> NDArray[np.bool_]:
    """Tell which packed codes (of one or two code points) hold a character.

    Example:
        >>> codes_hold(np.array([term_code("税率"), term_code("率")]), "税").tolist()
        [True, False]
    """
    point = ord(character)
    held: NDArray[np.bool_] = (codes < PACKED) & ((codes & _POINT_MASK == point) | (codes >> _POINT_BITS == point))
    return held
