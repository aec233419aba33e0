"""The two things that leave a run: the protected audit with everything, and a public projection with next to nothing.

Numbers are rounded to six decimals here and nowhere else, after every decision about order has been made.
"""

import json
from dataclasses import asdict

from kbretrieval.offline.errors import GateFired
from kbretrieval.offline.experiment import CHANNELS, QueryRun, Run
from kbretrieval.offline.fusion import Fused
from kbretrieval.offline.metrics import Metrics
from kbretrieval.offline.model import SCHEMA_VERSION, Representation
from kbretrieval.offline.ranking import Ranked

AUDIT_SCHEMA_VERSION = "semantic-search-offline-audit-v1"
PUBLIC_SCHEMA_VERSION = "semantic-search-offline-public-v1"
DECIMALS = 6

NOTICES = {
    "identity": "Tenant and subject groups are oracle input of an offline audit. In production they come from a "
    "trusted context only, never from what a caller declares.",
    "label": "The visibility label is no access control. It says who should read this report and stops nobody.",
    "metrics": "These metrics describe this fixture under this code. They are not comparable with the metrics of a "
    "real model, and say nothing about a real corpus.",
    "representation": "The vectors are hand-made. They are not a trained embedding, there is no tokenizer and no ANN "
    "index, and nothing is claimed about other languages.",
}


def audit_report(run: Run) -> dict[str, object]:
    """Return the protected audit as JSON values: windows, judgements, metrics, violations (OFF-51 to OFF-53).

    It holds query texts and forbidden lists, so that it belongs in a guarded place, and says so; no path, no
    credential (OFF-3). Document titles and texts are not in it.

    Example:
        >>> from kbretrieval.offline.experiment import run_experiment
        >>> from kbretrieval.offline.model import Fixture, Representation
        >>> audit_report(run_experiment(Fixture(Representation("toy"), (), ())))["visibility"]
        'protected_audit'
    """
    return {
        "report_schema_version": AUDIT_SCHEMA_VERSION,
        "visibility": "protected_audit",
        "notices": dict(NOTICES),
        "fixture_schema_version": SCHEMA_VERSION,
        "representation": _representation(run.fixture.representation),
        "settings": asdict(run.settings),
        "document_count": len(run.fixture.documents),
        "query_count": len(run.fixture.queries),
        "judged_query_count": sum(bool(query.qrels) for query in run.fixture.queries),
        "macro": {channel: _metrics(run.macro[channel]) for channel in CHANNELS},
        "queries": [_query(query) for query in run.queries],
        "security_violations": [asdict(violation) for violation in run.violations],
    }


def public_projection(run: Run) -> dict[str, object]:
    """Return what a user may see: per query the first `top_k` hybrid hits as rank, id and title (OFF-54).

    Built from an allow-list, so that a new field of the audit cannot leak into it. No query text, judgement,
    metric, forbidden list, score or window. A run with violations is refused: `GateFired`.

    Example:
        >>> from kbretrieval.offline.experiment import run_experiment
        >>> from kbretrieval.offline.model import Fixture, Representation
        >>> public_projection(run_experiment(Fixture(Representation("toy"), (), ())))["results"]
        []
    """
    if run.violations:
        raise GateFired(f"{len(run.violations)} security violations in the audit, 0 allowed")
    titles = {document.id: document.title for document in run.fixture.documents}
    return {
        "report_schema_version": PUBLIC_SCHEMA_VERSION,
        "visibility": "public",
        "results": [
            {
                "query_id": query.query.id,
                "hits": [
                    {"rank": hit.rank, "id": hit.id, "title": titles[hit.id]}
                    for hit in query.hybrid[: run.settings.top_k]
                ],
            }
            for query in run.queries
        ],
    }


def to_json(report: dict[str, object]) -> str:
    """Return a report as ASCII-escaped JSON with sorted keys and a final newline: the same in every console (OFF-66).

    Example:
        >>> to_json({"b": 1, "a": "退款"})
        '{\\n  "a": "\\\\u9000\\\\u6b3e",\\n  "b": 1\\n}\\n'
    """
    return json.dumps(report, ensure_ascii=True, allow_nan=False, sort_keys=True, indent=2) + "\n"


def _rounded(value: float) -> float:
    # Adding zero turns a rounded -0.0 into 0.0.
    return round(value, DECIMALS) + 0.0


def _metrics(metrics: Metrics | None) -> dict[str, float] | None:
    return None if metrics is None else {name: _rounded(value) for name, value in asdict(metrics).items()}


def _representation(representation: Representation) -> dict[str, object]:
    return {
        "name": representation.name,
        "kind": representation.kind,
        "axes": list(representation.axes),
        "dimension": representation.dimension,
        "normalized": representation.normalized,
        "trained_embedding": representation.trained_embedding,
    }


def _query(run: QueryRun) -> dict[str, object]:
    query = run.query
    windows: dict[str, list[dict[str, object]]] = {
        "bm25": [_ranked(hit) for hit in run.bm25],
        "dense": [_ranked(hit) for hit in run.dense],
        "hybrid": [{**_ranked(hit), "source_ranks": dict(hit.source_ranks)} for hit in run.hybrid],
    }
    return {
        "id": query.id,
        "text": query.text,
        "tenant": query.tenant,
        "subject_groups": list(query.subject_groups),
        "filters": {"languages": list(query.languages), "products": list(query.products)},
        "qrels": dict(query.qrels),
        "must_not_return": list(query.must_not_return),
        "channels": {
            channel: {"window": windows[channel], "metrics": _metrics(run.metrics[channel])} for channel in CHANNELS
        },
    }


def _ranked(hit: Ranked | Fused) -> dict[str, object]:
    return {"id": hit.id, "rank": hit.rank, "score": _rounded(hit.score)}
