"""The exact form of an exported hit: which keys, which types, which ranges (CIT-2, CIT-8)."""

import math
from collections.abc import Mapping
from typing import Any

from kbretrieval.errors import InvalidHit
from kbretrieval.identity import MAX_REVISION

CHANNEL_ORDER = ("lexical", "vector")
_TEXT = ("tenant", "doc_id", "document_sha256", "chunk_sha256", "principal", "text", "title", "heading")
_POSITIVE = ("chunk_key", "revision", "acl_revision")
_POINTS = ("start", "end")
_NUMBERS = ("fused", "title_overlap")
_KEYS = frozenset({"schema", "channels", *_TEXT, *_POSITIVE, *_POINTS, *_NUMBERS})


def _is_text(value: object) -> bool:
    if type(value) is not str:
        return False
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _is_integer(value: object, least: int) -> bool:
    return type(value) is int and least <= value <= MAX_REVISION


def _is_number(value: object) -> bool:
    return type(value) is float and math.isfinite(value)


def _channels(value: object) -> list[tuple[str, int, float]]:
    if not isinstance(value, Mapping) or not set(value) <= set(CHANNEL_ORDER):
        raise InvalidHit(f"channels: a mapping of {' and '.join(CHANNEL_ORDER)} is required, another value given")
    made = []
    for name in CHANNEL_ORDER:
        if name not in value:
            continue
        item = value[name]
        if not isinstance(item, Mapping) or set(item) != {"rank", "score"}:
            raise InvalidHit(f"channels: {name} needs exactly rank and score")
        rank, score = item["rank"], item["score"]
        if not _is_integer(rank, 1) or not _is_number(score):
            raise InvalidHit(f"channels: {name} needs an integer rank from 1 and a finite score")
        made.append((name, rank, score))
    return made


def checked_hit_fields(value: object, schema: str) -> dict[str, Any]:
    """Return the fields of an exported hit, `channels` as (name, rank, score) in channel order.

    Raises `invalid_hit` for a missing or extra key and for any value of another exact type: `True` and `1.0` are no
    revisions, a lone surrogate is no text.
    """
    if not isinstance(value, Mapping):
        raise InvalidHit(f"a mapping is required, {type(value).__name__} given")
    if set(value) != _KEYS:
        raise InvalidHit(f"exactly {len(_KEYS)} known keys are required, {len(value)} given")
    if type(value["schema"]) is not str or value["schema"] != schema:
        raise InvalidHit(f"schema: {schema} is required, another given")
    for names, holds, what in (
        (_TEXT, _is_text, "a string without lone surrogates"),
        (_POSITIVE, lambda item: _is_integer(item, 1), "an integer from 1 to 2^63 - 1"),
        (_POINTS, lambda item: _is_integer(item, 0), "an integer from 0 to 2^63 - 1"),
        (_NUMBERS, _is_number, "a finite number"),
    ):
        for name in names:
            if not holds(value[name]):
                raise InvalidHit(f"{name}: {what} is required, {type(value[name]).__name__} given")
    return {name: value[name] for name in _KEYS - {"schema", "channels"}} | {"channels": _channels(value["channels"])}
