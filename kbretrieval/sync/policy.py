"""`Policy`: who may read which path (POL-1, POL-4). It is read whole or refused whole, with line and column."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kbretrieval.errors import ExplicitAclListRequired, InvalidPath, InvalidPolicy
from kbretrieval.identity import checked_acl
from kbretrieval.sync.access import Acl
from kbretrieval.sync.patterns import PathPattern
from kbretrieval.sync.policy_file import read_policy

MAX_POLICY_BYTES = 1_000_000


def _checked(entries: object) -> Acl:
    """Return an ACL as it is stored, or raise `invalid_policy`; a string is no list of its letters."""
    if not isinstance(entries, (tuple, list)):
        raise InvalidPolicy(f"a list of entries is required, {type(entries).__name__} given")
    try:
        return checked_acl(list(entries))
    except ExplicitAclListRequired as error:
        raise InvalidPolicy(error.facts) from None


@dataclass(frozen=True, slots=True)
class Rule:
    """Whoever is in `allow` may read the paths that `match` names; raises `invalid_policy`."""

    match: PathPattern
    allow: Acl

    def __post_init__(self) -> None:
        if not isinstance(self.match, PathPattern):
            raise InvalidPolicy(f"match: a PathPattern is required, {type(self.match).__name__} given")
        object.__setattr__(self, "allow", _checked(self.allow))


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules in order, the last that matches decides; `default` is for paths that none matches, `()` is nobody.

    Raises `invalid_policy` for entries that are no list, or that ID-2 refuses.

    Example:
        >>> policy = Policy.from_yaml('''
        ... version: 1
        ... rules:
        ...   - match: "policies/**"
        ...     allow: ["*"]
        ...   - match: "policies/pay.md"
        ...     allow: ["group:hr"]
        ... ''')
        >>> policy.acl_for("policies/leave.md"), policy.acl_for("policies/pay.md"), policy.acl_for("notes.md")
        (('*',), ('group:hr',), ())
    """

    rules: Sequence[Rule] = ()
    default: Acl = ()

    def __post_init__(self) -> None:
        rules: object = self.rules
        if not isinstance(rules, (tuple, list)) or not all(isinstance(rule, Rule) for rule in rules):
            raise InvalidPolicy("rules: a list of Rule is required, another value given")
        object.__setattr__(self, "rules", tuple(rules))
        object.__setattr__(self, "default", _checked(self.default))

    @classmethod
    def from_yaml(cls, text: str) -> "Policy":
        """Return the policy that a YAML text holds.

        The form is `version: 1`, then `default` (a list, else nobody) and `rules`, each a `match` and an `allow`.
        Unknown or repeated keys, other versions, anything that is no list, identities that ID-2 refuses and patterns
        that match nothing are `invalid_policy` as a whole.
        """
        default, rules = read_policy(text)
        return cls(tuple(Rule(match, allow) for match, allow in rules), default)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Policy":
        """Return the policy in a file, UTF-8; raises `invalid_path` and `invalid_policy`."""
        try:
            with Path(path).open("rb") as file:
                raw = file.read(MAX_POLICY_BYTES + 1)
        except (OSError, TypeError, ValueError) as error:
            raise InvalidPath(f"a readable ACL file is required (errno {getattr(error, 'errno', None)})") from None
        if len(raw) > MAX_POLICY_BYTES:
            raise InvalidPolicy(f"at most {MAX_POLICY_BYTES} bytes are allowed, more are there")
        try:
            return cls.from_yaml(raw.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            at = raw[: error.start]
        # Raised outside the handler: the decoder's error holds the bytes, and would stay reachable as context (ERR-1).
        line, column = at.count(b"\n") + 1, len(at) - at.rfind(b"\n")
        raise InvalidPolicy(f"line {line}, column {column}: UTF-8 is required, the byte there is none")

    def acl_for(self, path: str) -> Acl:
        """Return the ACL of a path below the root, POSIX separators and NFC."""
        return next((rule.allow for rule in reversed(self.rules) if rule.match.matches(path)), self.default)
