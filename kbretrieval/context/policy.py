"""Field policies: which fields of a document each role gets, and the limits of every budget (CTX-16, CTX-52)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from kbretrieval.context.budget import DEFAULT_BUDGET, Budget
from kbretrieval.context.canonical import canonical_digest
from kbretrieval.errors import ContextPolicyInvalid
from kbretrieval.identity import checked_name
from kbretrieval.results import Exported

FIELDS = ("title", "provenance", "text")


@dataclass(frozen=True, slots=True)
class Role(Exported):
    """What one role gets of a document: some of title, provenance and text.

    The text of a projection holds its title and headings, so a role that gets the text and not the title would get the
    title by another way; that is refused, like unknown or repeated fields, with `context_policy_invalid`.

    Example:
        >>> Role("citing", ("text", "title", "provenance")).fields
        ('title', 'provenance', 'text')
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.role/1"

    name: str
    fields: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", checked_name(self.name, "role"))
        given: object = self.fields
        if not isinstance(given, (tuple, list)) or not given or any(given.count(name) > 1 for name in given):
            raise ContextPolicyInvalid(f"fields: some of {', '.join(FIELDS)} are required, each once, others given")
        if any(name not in FIELDS for name in given):
            raise ContextPolicyInvalid(f"fields: some of {', '.join(FIELDS)} are required, each once, others given")
        if "text" in given and "title" not in given:
            raise ContextPolicyInvalid("fields: text holds the title, and text without title is given")
        object.__setattr__(self, "fields", tuple(name for name in FIELDS if name in given))


@dataclass(frozen=True, slots=True)
class Policy(Exported):
    """The roles of a tenant and the most that a budget may ask for.

    Example:
        >>> Policy(roles=(Role("titles", ("title",)),)).fields_of("titles")
        ('title',)
    """

    SCHEMA: ClassVar[str] = "kbretrieval.context.policy/1"

    roles: tuple[Role, ...] = (Role("reading", ("title", "text")), Role("citing", FIELDS))
    limits: Budget = DEFAULT_BUDGET

    def __post_init__(self) -> None:
        roles: object = self.roles
        if not isinstance(roles, (tuple, list)) or not roles or not all(type(role) is Role for role in roles):
            raise ContextPolicyInvalid("roles: a tuple of Role is required, another value given")
        if len({role.name for role in roles}) != len(roles) or type(self.limits) is not Budget:
            raise ContextPolicyInvalid("each role once and a Budget as limits are required, others given")
        object.__setattr__(self, "roles", tuple(roles))

    def fields_of(self, role: str) -> tuple[str, ...] | None:
        """Return the fields of a role in a fixed order, None where the policy has no such role."""
        return next((item.fields for item in self.roles if item.name == role), None)


@dataclass(frozen=True, slots=True)
class PolicyVersion(Exported):
    """A policy as it is stored for a tenant: version 0 is the default that holds before the first `set_policy`."""

    SCHEMA: ClassVar[str] = "kbretrieval.context.policy-version/1"

    version: int
    sha256: str
    policy: Policy


DEFAULT_POLICY = Policy()


def versioned(version: int, policy: Policy) -> PolicyVersion:
    """Return a policy with its number and the digest of its content.

    Example:
        >>> versioned(0, DEFAULT_POLICY).policy.limits == Budget()
        True
    """
    return PolicyVersion(version, canonical_digest(policy.to_dict()), policy)


def policy_from(body: Any) -> Policy:
    """Return the policy that `to_dict` exported; another structure is `context_policy_invalid`."""
    try:
        roles = tuple(Role(item["name"], tuple(item["fields"])) for item in body["roles"])
        limits = Budget(**{name: value for name, value in body["limits"].items() if name != "schema"})
    except (KeyError, TypeError):
        raise ContextPolicyInvalid(f"{Policy.SCHEMA} is required, another structure is stored") from None
    return Policy(roles, limits)
