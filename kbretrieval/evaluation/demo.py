"""The book's core experiment (chapter 13): one life of an index, from first quotation to refused replay.

Every field of the report is the outcome of a comparison made in the run; one that does not hold is `claim_failed`, and
no report is written.
"""

from dataclasses import dataclass
from typing import Any

from kbretrieval.errors import ClaimFailed, KBError
from kbretrieval.evaluation.corpus import BOOK_CONTEXT, Corpus
from kbretrieval.identity import Context
from kbretrieval.index import Index
from kbretrieval.options import BOOK
from kbretrieval.results import Answer, Hit

KIND = "real_sqlite_fts5_and_term_vectors_non_llm"
LIMITATIONS = (
    "extractive answers, no LLM",
    "term vectors are not semantic embeddings",
    "deletion is a live-index visibility guarantee, not backup/physical erasure",
    "revocation cannot recall information already delivered",
)
BOB = Context("acme", "bob")
PRIVATE_QUERIES = ("SECRET-ACME-BOB", "SECRET-BETA", "zxqv-unrelated-token")


def _hold(name: str, outcome: bool) -> bool:
    if not outcome:
        raise ClaimFailed(f"{name}: true is required, false came out")
    return outcome


@dataclass(frozen=True, slots=True)
class Experiment:
    """The steps of the experiment on one freshly filled index."""

    index: Index
    corpus: Corpus

    def hits(self, query: str, context: Context = BOOK_CONTEXT, doc_id: str | None = None) -> list[Hit]:
        """Return the hits of a query with the book's settings, of one document if named."""
        found = self.index.search(query, context, 10, "hybrid", BOOK)
        return [hit for hit in found if doc_id in (None, hit.doc_id)]

    def _finds(self, query: str, context: Context, doc_id: str) -> bool:
        return bool(self.hits(query, context, doc_id))

    def _dead(self, hits: list[Hit]) -> bool:
        return bool(hits) and self.index.answer(hits, BOOK_CONTEXT).state == "abstain"

    def quoted(self, query: str) -> Answer:
        """Return the first quotation for a query."""
        return self.index.answer(self.hits(query), BOOK_CONTEXT, 1)

    def update(self) -> dict[str, Any]:
        """Refunds change from 30 to 14 days: the old fact is not found, the old citation refused."""
        old = self.hits("退款政策", doc_id="refund")
        source = self.corpus.document("acme", "refund")
        changed = source.source.replace("30天", "14天")
        made = self.index.upsert("acme", "refund", 2, source.format, changed, list(source.acl))
        gone = not self._finds("30", BOOK_CONTEXT, "refund")
        return {
            "version_update": {
                "state": made.state,
                "revision": made.revision,
                "chunks": made.chunks,
                "sha256": made.sha256,
            },
            "old_30_day_fact_retrievable": not _hold("old fact not found", gone),
            "new_answer": book_answer(self.quoted("退款政策")),
            "stale_revision_citation_rejected": _hold("stale citation rejected", self._dead(old)),
        }

    def revoke(self) -> dict[str, Any]:
        """Alice loses remote, Bob keeps it."""
        old = self.hits("远程办公", doc_id="remote")
        self.index.set_acl("acme", "remote", ["bob"], 1)
        gone = self._dead(old) and not self._finds("远程办公", BOOK_CONTEXT, "remote")
        return {
            "revoked_alice_citation_rejected": _hold("revoked citation rejected", gone),
            "bob_access_preserved": _hold("bob keeps access", self._finds("远程办公", BOB, "remote")),
        }

    def remove(self) -> dict[str, Any]:
        """Leave is deleted; its old event comes again and is refused."""
        old = self.hits("年假申请", doc_id="leave")
        self.index.delete("acme", "leave", 2)
        gone = self._dead(old) and not self._finds("年假申请", BOOK_CONTEXT, "leave")
        source = self.corpus.document("acme", "leave")
        try:
            self.index.upsert("acme", "leave", 1, source.format, source.source, list(source.acl))
        except KBError as error:
            replayed = error.code
        else:
            raise ClaimFailed("replay: a refusal is required, the old event was accepted")
        return {
            "deleted_citation_rejected": _hold("deleted citation rejected", gone),
            "stale_replay_error": replayed,
        }


def book_answer(answer: Answer) -> dict[str, Any]:
    """Return an answer with exactly the book's keys."""
    evidence = [
        {name: getattr(item, name) for name in ("doc_id", "revision", "start", "end", "sha256", "quote")}
        for item in answer.evidence
    ]
    return {"state": answer.state, "non_llm": answer.non_llm, "answer": answer.answer, "evidence": evidence}


def run_demo(index: Index, corpus: Corpus) -> dict[str, Any]:
    """Return the report of the experiment with exactly the book's keys, on a new index with the book's window.

    Raises `claim_failed` at the first outcome that is not the promised one.
    """
    corpus.fill(index)
    experiment = Experiment(index, corpus)
    report: dict[str, Any] = {"kind": KIND, "initial_answer": book_answer(experiment.quoted("住宿报销"))}
    report |= experiment.update() | experiment.revoke() | experiment.remove()
    counts = [len(experiment.hits(query)) for query in PRIVATE_QUERIES]
    _hold("private, foreign and unrelated queries find nothing", counts == [0, 0, 0])
    return report | {"cross_tenant_and_private_results": counts, "limitations": list(LIMITATIONS)}
