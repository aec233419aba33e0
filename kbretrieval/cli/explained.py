"""An explanation for the eye: one part a question, and a first line that says whom it is for."""

from collections.abc import Iterator

from kbretrieval.cli.shown import fields_text, safe, table
from kbretrieval.explaining import Explanation
from kbretrieval.explaining.explanation import ExplainedHit

FIRST_LINE = "Maintenance view, never for end users: it tells absent, deleted and forbidden apart.\n"
SHOWN_DIGITS = 12
_HOLDS = {True: "holds", False: "FAILS EVERY HIT", None: "-"}


def _version(found: Explanation) -> str:
    if found.version is None:
        return "nothing is stored under this name\n"
    contract = {f"contract: {name}": value for name, value in found.contract.to_dict().items() if name != "projection"}
    return fields_text({**_fields(found.version.to_dict()), **contract})


def _fields(value: dict[str, object]) -> dict[str, object]:
    return {name: ("yes" if item else "no") if isinstance(item, bool) else item for name, item in value.items()}


def _access(found: Explanation) -> str:
    access = found.access
    verdict = f"yes, by {access.granted_by}" if access.may_read else f"no: {access.reason}"
    rest = {name: item for name, item in _fields(access.to_dict()).items() if name not in ("may_read", "reason")}
    return safe(f"may {access.principal} read it: {verdict}\n") + fields_text(rest)


def _source(found: Explanation) -> str:
    if found.source is None:
        return "there is no text to find again\n"
    digests = {name: item for name, item in found.source.to_dict().items() if name not in ("schema", "chunks")}
    head = ("chunk", "key", "code points", "lines", "sha256", "agrees")
    rows = [
        (
            *(str(item.number), str(item.chunk_key), f"{item.start}-{item.end}", f"{item.line_start}-{item.line_end}"),
            *(item.sha256, "yes" if item.agrees else "NO"),
        )
        for item in found.source.chunks
    ]
    return fields_text(digests) + (table(head, rows) if rows else "no chunks\n")


def _rules(found: Explanation) -> str:
    rows = [(rule.field, rule.required, rule.verdict, _HOLDS[rule.holds]) for rule in found.rules]
    return table(("a hit must carry", "now", "else", "whatever the hit"), rows)


def _difference(item: ExplainedHit) -> str:
    differences = (f"{each.field} {_short(each.carried)}, {_short(each.stored)} stored" for each in item.differences)
    return "; ".join(differences) or "-"


def _short(value: int | str | None) -> str:
    return "none" if value is None else f"{value[:SHOWN_DIGITS]}…" if isinstance(value, str) else str(value)


def _hits(found: Explanation) -> str:
    rows = [
        (str(item.judged.position), item.judged.verdict, "yes" if item.of_this_document else "no", _difference(item))
        for item in found.hits
    ]
    return table(("hit", "verdict", "of this document", "carried and stored"), rows) if rows else ""


def _parts(found: Explanation) -> Iterator[str]:
    yield FIRST_LINE + safe(f"{found.doc_id} in {found.tenant}: {found.state}\n")
    yield "1  which projection version\n" + _version(found)
    yield "2  who may read it, and why\n" + _access(found)
    yield "3  how a quotation is found again\n" + _source(found)
    yield "4  what makes an older citation fail now: the first of these that does not fit\n" + _rules(found)
    if found.hits:
        yield "the hits given\n" + _hits(found)


def explanation_text(found: Explanation) -> str:
    """Return the four answers, one below the other, without a text of the document; digests of hits are shortened."""
    return "\n".join(_parts(found))
