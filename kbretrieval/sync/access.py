"""What one ACL says against another: who gains, who loses, and in which order a change is safe (POL-3, POL-4)."""

from kbretrieval.identity import EVERYONE

Acl = tuple[str, ...]


def gained(old: Acl, new: Acl) -> Acl:
    """Return the entries that admit somebody under `new` whom `old` did not name; `*` names everyone.

    Groups and names are told apart by their entries alone: nobody here knows who is in a group.

    Example:
        >>> gained(("alice",), ("bob", "alice")), gained(("*",), ("bob",))
        (('bob',), ())
    """
    return () if EVERYONE in old else tuple(entry for entry in new if entry not in old)


def halves(old: Acl, new: Acl) -> tuple[Acl | None, Acl | None]:
    """Return the lists to store before and after the content of a run, None where a half has nothing to do (POL-3).

    The first takes rights away and gives none, the second gives; so whoever reads in between may read under both.

    Example:
        >>> halves(("alice", "bob"), ("bob", "carol"))
        (('bob',), ('bob', 'carol'))
        >>> halves(("*",), ("alice",)), halves(("alice",), ("*",))
        ((('alice',), None), (None, ('*',)))
    """
    if old == new:
        return None, None
    if not gained(old, new):
        return new, None
    if not gained(new, old):
        return None, new
    return tuple(entry for entry in new if entry in old), new
