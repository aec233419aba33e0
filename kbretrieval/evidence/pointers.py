"""JSON pointers (RFC 6901): how prose and exports name one value of a claim."""

import re

from kbretrieval.evidence.canonical import Value
from kbretrieval.evidence.errors import BindingInvalid


def resolve(value: Value, pointer: str) -> Value:
    """Return what an RFC 6901 JSON pointer names. Raises `BindingInvalid` when it names nothing.

    Example:
        >>> resolve({"rows": [{"rank": 1}]}, "/rows/0/rank")
        1
    """
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and re.fullmatch(r"0|[1-9][0-9]{0,8}", name) and int(name) < len(value):
            value = value[int(name)]
        else:
            raise BindingInvalid(f"pointer {pointer} given, {name!a} names nothing there")
    return value
