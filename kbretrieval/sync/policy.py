"""`Policy`: who may read which path (POL-1, POL-4). It is read whole or refused whole, with line and column."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kbretrieval.errors import InvalidPath, InvalidPolicy
from kbretrieval.sync.access import Acl
from kbretrieval.sync.patterns import PathPattern
from kbretrieval.sync.policy_file import read_policy

MAX_POLICY_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Rule:
    """Whoever is in `allow` may read the paths that `match` names."""

    match: PathPattern
    allow: Acl


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules in order, the last that matches decides; `default` is for paths that none matches, `()` is nobody.

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
        except (OSError, ValueError) as error:
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
