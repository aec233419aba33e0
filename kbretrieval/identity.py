"""Who asks, which document, in which order: identity strings, revisions, `Context`, `Provenance` (chapter 2).

Everything here is checked on input only, never on stored rows.
"""

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeGuard, cast

from kbretrieval.errors import (
    ExplicitAclListRequired,
    ExplicitRestoreBooleanRequired,
    InvalidIdentity,
    InvalidProvenance,
    PositiveAclRevisionRequired,
    PositiveRevisionRequired,
    TrustedContextRequired,
)

MAX_NAME = 200
MAX_DOC_ID = 1024
MAX_GROUPS = 1000
MAX_ACL_ENTRIES = 10_000
MAX_PROVENANCE = 2048
MAX_REVISION = 2**63 - 1
GROUP_PREFIX = "group:"
EVERYONE = "*"

_FORBIDDEN = {"Cc": "a control character", "Cf": "a format character", "Cs": "a surrogate"}
_SPACES = ("Zs", "Zl", "Zp")


def _fault(value: object, limit: int) -> str | None:
    """Say what is wrong with an identity string (ID-2), or None."""
    if not isinstance(value, str):
        return f"a string is required, {type(value).__name__} given"
    if not 1 <= len(value) <= limit:
        return f"1 to {limit} code points are required, {len(value)} given"
    if value == EVERYONE:
        return "'*' alone is reserved"
    for character in value:
        category = unicodedata.category(character)
        if category in _FORBIDDEN:
            return f"{_FORBIDDEN[category]} (U+{ord(character):04X}) is not allowed"
        if category in _SPACES and character != " ":
            return f"white space other than U+0020 (U+{ord(character):04X}) is not allowed"
    if value[0] == " " or value[-1] == " ":
        return "white space at an end is not allowed"
    if not unicodedata.is_normalized("NFC", value):
        return "the string is not in NFC"
    return None


def checked_name(value: object, what: str, limit: int = MAX_NAME) -> str:
    """Return `value`, as a plain string, if it is a valid identity string (ID-2), else raise `invalid_identity`.

    `limit` counts code points. Comparison is exact: identities are never normalised as paths.

    Example:
        >>> checked_name("制度/年假.md", "doc_id", MAX_DOC_ID)
        '制度/年假.md'
    """
    value = _plain(value)
    fault = _fault(value, limit)
    if fault:
        raise InvalidIdentity(f"{what}: {fault}")
    return cast(str, value)


def _plain(value: object) -> object:
    # A member of a string enumeration is a name like any other; in a hit it would be no exact string (CIT-8).
    return str.__str__(value) if isinstance(value, str) else value


def checked_document(tenant: object, doc_id: object) -> tuple[str, str]:
    """Return the identity of a document, a tenant and a name in it (ID-1)."""
    return checked_name(tenant, "tenant"), checked_name(doc_id, "doc_id", MAX_DOC_ID)


def checked_principal(value: object) -> str:
    """Return a principal's name; it cannot be mistaken for a group entry (ID-2)."""
    name = checked_name(value, "principal")
    if name.startswith(GROUP_PREFIX):
        raise InvalidIdentity(f"principal: a name that starts with {GROUP_PREFIX!r} is reserved for groups")
    return name


def checked_group(value: object) -> str:
    """Return a group's name, which holds no colon (ID-2)."""
    name = checked_name(value, "group")
    if ":" in name:
        raise InvalidIdentity("group: a colon is not allowed")
    return name


def _is_revision(value: object) -> TypeGuard[int]:
    return type(value) is int and 1 <= value <= MAX_REVISION


def _shown(value: object) -> str:
    return str(value) if type(value) is int and abs(value) < 10**20 else type(value).__name__


def checked_revision(value: object) -> int:
    """Return a content revision, an integer from 1 to 2^63 - 1 (ID-3)."""
    if not _is_revision(value):
        raise PositiveRevisionRequired(f"an integer from 1 to {MAX_REVISION} is required, {_shown(value)} given")
    return value


def checked_acl_revision(value: object) -> int:
    """Return an ACL revision, an integer from 1 to 2^63 - 1 (ID-3)."""
    if not _is_revision(value):
        raise PositiveAclRevisionRequired(f"an integer from 1 to {MAX_REVISION} is required, {_shown(value)} given")
    return value


def checked_restore(value: object) -> bool:
    """Return `restore` if it is a boolean (ID-3)."""
    if type(value) is not bool:
        raise ExplicitRestoreBooleanRequired(f"True or False is required, {type(value).__name__} given")
    return value


def _entry_fault(entry: object) -> str | None:
    if isinstance(entry, str) and entry == EVERYONE:
        return None
    if isinstance(entry, str) and entry.startswith(GROUP_PREFIX):
        group = entry[len(GROUP_PREFIX) :]
        return "a colon in a group name is not allowed" if ":" in group else _fault(group, MAX_NAME)
    return _fault(entry, MAX_NAME)


def checked_acl(value: object) -> tuple[str, ...]:
    """Return an ACL as a tuple in the given order, repeated entries once (ACL-2).

    `[]` is nobody, `*` everyone in the tenant, `group:NAME` whoever's context has that group. There is no negative
    entry. Raises `explicit_acl_list_required` for anything but a list of at most 10,000 valid strings.

    Example:
        >>> checked_acl(["alice", "group:hr", "alice"])
        ('alice', 'group:hr')
    """
    if type(value) is not list:
        raise ExplicitAclListRequired(f"a list is required, {type(value).__name__} given")
    if len(value) > MAX_ACL_ENTRIES:
        raise ExplicitAclListRequired(f"at most {MAX_ACL_ENTRIES} entries are allowed, {len(value)} given")
    entries = [_plain(entry) for entry in value]
    for number, entry in enumerate(entries, 1):
        fault = _entry_fault(entry)
        if fault:
            raise ExplicitAclListRequired(f"entry {number}: {fault}")
    return tuple(dict.fromkeys(cast(list[str], entries)))


@dataclass(frozen=True, slots=True)
class Context:
    """Who asks: built by trusted code from an identity that is already authenticated.

    `groups` may be given as a tuple, list, set or frozenset of names without colon; it is kept sorted, each name
    once, at most 1,000. Raises `invalid_identity`. It authenticates nobody: whoever can build a `Context` is believed.

    Example:
        >>> Context("acme", "carol", groups=["hr", "hr"]).groups
        ('hr',)
    """

    tenant: str
    principal: str
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "tenant", checked_name(self.tenant, "tenant"))
        object.__setattr__(self, "principal", checked_principal(self.principal))
        given: object = self.groups
        if not isinstance(given, (tuple, list, set, frozenset)):
            raise InvalidIdentity(f"groups: a tuple is required, {type(given).__name__} given")
        if len(given) > MAX_GROUPS:
            raise InvalidIdentity(f"groups: at most {MAX_GROUPS} are allowed, {len(given)} given")
        object.__setattr__(self, "groups", tuple(sorted({checked_group(group) for group in given})))

    def entries(self) -> tuple[str, ...]:
        """Return the ACL entries that admit this context, in the order of `granted_by` (CIT-6).

        Example:
            >>> Context("acme", "carol", ("hr",)).entries()
            ('carol', 'group:hr', '*')
        """
        return (self.principal, *(GROUP_PREFIX + group for group in self.groups), EVERYONE)


def checked_context(value: object) -> Context:
    """Return `value` if it is exactly a `Context`, else raise `trusted_context_required` (ACL-1)."""
    if type(value) is not Context:
        raise TrustedContextRequired(f"a Context is required, {type(value).__name__} given")
    return value


def granted_by(acl: Iterable[str], context: Context) -> str | None:
    """Return the entry that lets `context` read, or None: own name, then groups in the ACL's order, then `*` (CIT-6).

    Example:
        >>> granted_by(["*", "group:hr"], Context("acme", "carol", ("hr",)))
        'group:hr'
    """
    entries = tuple(acl)
    if context.principal in entries:
        return context.principal
    mine = {GROUP_PREFIX + group for group in context.groups}
    for entry in entries:
        if entry in mine:
            return entry
    return EVERYONE if EVERYONE in entries else None


@dataclass(frozen=True, slots=True)
class Provenance:
    """The way from a quotation to a versioned source object (ID-6); strings of at most 2,048 code points, or None.

    Stored with the document and given back with each quotation. A control character, a surrogate or another type is
    `invalid_provenance`. Nothing is looked up: that the place holds what was indexed is not promised.

    Example:
        >>> Provenance(uri="file:///policies/travel.md", version="7").version
        '7'
    """

    uri: str | None = None
    connector: str | None = None
    collected_at: str | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        for name in ("uri", "connector", "collected_at", "version"):
            value = getattr(self, name)
            if value is None:
                continue
            if type(value) is not str or len(value) > MAX_PROVENANCE:
                size = len(value) if isinstance(value, str) else type(value).__name__
                raise InvalidProvenance(f"{name}: a string of at most {MAX_PROVENANCE} is required, {size} given")
            if any(unicodedata.category(character) in ("Cc", "Cs") for character in value):
                raise InvalidProvenance(f"{name}: a control character or surrogate is not allowed")

    def to_dict(self) -> dict[str, str | None]:
        """Return the four fields by name."""
        return {
            "uri": self.uri,
            "connector": self.connector,
            "collected_at": self.collected_at,
            "version": self.version,
        }


def checked_provenance(value: object) -> Provenance | None:
    """Return `value` if it is a `Provenance` or None."""
    if value is None or type(value) is Provenance:
        return value
    raise InvalidProvenance(f"a Provenance is required, {type(value).__name__} given")
