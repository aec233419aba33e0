"""The YAML form of a policy, judged node by node, so that every fault has a line and a column (POL-1).

Nothing is built from the text: the safe loader only composes it into nodes, and their tags say what is a string. So an
unquoted `yes`, `1` or `!alice` is refused where it stands, and a plain `*` is YAML's own syntax error.
"""

from collections.abc import Iterator

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kbretrieval.errors import ExplicitAclListRequired, InvalidParameter, InvalidPolicy
from kbretrieval.identity import checked_acl
from kbretrieval.sync.access import Acl
from kbretrieval.sync.patterns import PathPattern

VERSION = "1"

_STRING = "tag:yaml.org,2002:str"
_INTEGER = "tag:yaml.org,2002:int"


def read_policy(text: str) -> tuple[Acl, tuple[tuple[PathPattern, Acl], ...]]:
    """Return the default and the rules; raises `invalid_policy` with line and column.

    Example:
        >>> read_policy("version: 1\\ndefault: [alice]")
        (('alice',), ())
    """
    if not isinstance(text, str):
        raise InvalidPolicy(f"line 1, column 1: text is required, {type(text).__name__} given")
    root = _fields(_composed(text), required=("version",), optional=("default", "rules"))
    version = root["version"]
    if not isinstance(version, ScalarNode) or (version.tag, version.value) != (_INTEGER, VERSION):
        raise _fault(version, f"version {VERSION} is required, another value given")
    default = _entries(root["default"]) if "default" in root else ()
    rules = _sequence(root["rules"]) if "rules" in root else ()
    return default, tuple(_rule(node) for node in rules)


def _composed(text: str) -> Node:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        at = before.count("\n") + 1, len(before) - before.rfind("\n")
    except RecursionError:
        at = 1, 1
    else:
        if isinstance(node, Node):
            return node
        at = 1, 1
    # Raised outside the handlers: the parser's error holds the text, and would stay reachable as context (ERR-1).
    raise InvalidPolicy(f"line {at[0]}, column {at[1]}: one YAML mapping is required, the text breaks off or is none")


def _fault(node: Node, facts: str) -> InvalidPolicy:
    mark = node.start_mark
    return InvalidPolicy(f"line {mark.line + 1}, column {mark.column + 1}: {facts}")


def _fields(node: Node, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Node]:
    known = (*required, *optional)
    if not isinstance(node, MappingNode):
        raise _fault(node, f"a mapping of {', '.join(known)} is required, another value given")
    made: dict[str, Node] = {}
    for key, value in node.value:
        if not isinstance(key, ScalarNode) or key.tag != _STRING or key.value not in known:
            raise _fault(key, f"one of {', '.join(known)} is required, another key given")
        if key.value in made:
            raise _fault(key, f"{key.value} may stand once, it stands twice")
        made[key.value] = value
    for name in required:
        if name not in made:
            raise _fault(node, f"{name} is required, it is missing")
    return made


def _sequence(node: Node) -> Iterator[Node]:
    if not isinstance(node, SequenceNode):
        raise _fault(node, "a list is required, another value given")
    return iter(node.value)


def _string(node: Node) -> str:
    if not isinstance(node, ScalarNode) or node.tag != _STRING:
        raise _fault(node, "a string is required, another value given (quotes make it one)")
    return str(node.value)


def _entries(node: Node) -> Acl:
    entries = []
    for item in _sequence(node):
        entry = _string(item)
        try:
            checked_acl([entry])
        except ExplicitAclListRequired as error:
            raise _fault(item, error.facts.partition(": ")[2]) from None
        entries.append(entry)
    try:
        return checked_acl(entries)
    except ExplicitAclListRequired as error:
        raise _fault(node, error.facts) from None


def _rule(node: Node) -> tuple[PathPattern, Acl]:
    fields = _fields(node, required=("match", "allow"))
    try:
        return PathPattern(_string(fields["match"])), _entries(fields["allow"])
    except InvalidParameter as error:
        raise _fault(fields["match"], error.facts) from None
