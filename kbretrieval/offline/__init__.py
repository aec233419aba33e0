"""The offline hybrid experiment: a first-stage retrieval pipeline on the standard library alone.

Strict fixture, eligibility filter, BM25 and toy dense channels, RRF, graded metrics, security gate. It shares no code
with the index of this package, so that each can serve as the other's check.

Useful for seeing why each rule is there. Not useful as a measure of real models or corpora.

Example:
    >>> from kbretrieval.offline import bm25_scores, rrf, terms
    >>> terms("E042 怎么处理")
    ('e042', '怎么', '么处', '处理')
    >>> [hit.id for hit in rrf({"bm25": ["b"], "dense": ["a", "b"]})]
    ['b', 'a']
"""

from kbretrieval.offline.analysis import fold, pieces, runs, shared_terms, terms
from kbretrieval.offline.bm25 import (
    TermShare,
    bm25_scores,
    bm25_window,
    explain_bm25,
    inverse_document_frequency,
    saturated_frequency,
)
from kbretrieval.offline.dense import MEASURES, cosine, dense_window, dot, negative_euclidean
from kbretrieval.offline.eligibility import CONDITIONS, conditions_without, eligible_documents, failed_conditions
from kbretrieval.offline.errors import OfflineError
from kbretrieval.offline.experiment import CHANNELS, QueryRun, Run, Settings, audit_runs, run_experiment, run_query
from kbretrieval.offline.fixture import fixture_from_value, load_fixture, parse_fixture
from kbretrieval.offline.fusion import Fused, rrf
from kbretrieval.offline.gate import Violation, audit_window, reasons_against
from kbretrieval.offline.metrics import (
    Metrics,
    dcg,
    hit_at_k,
    macro_mean,
    metrics_at_k,
    ndcg_at_k,
    recall_at_k,
    reciprocal_rank_at_k,
)
from kbretrieval.offline.migration import SEAMS, Seam, seam
from kbretrieval.offline.model import AXES, Document, Fixture, Query, Representation
from kbretrieval.offline.ranking import Ranked, ranked
from kbretrieval.offline.report import audit_report, public_projection, to_json
from kbretrieval.offline.strict_json import parse_strict, read_fixture_bytes

__all__ = [
    "AXES",
    "CHANNELS",
    "CONDITIONS",
    "MEASURES",
    "SEAMS",
    "Document",
    "Fixture",
    "Fused",
    "Metrics",
    "OfflineError",
    "Query",
    "QueryRun",
    "Ranked",
    "Representation",
    "Run",
    "Seam",
    "Settings",
    "TermShare",
    "Violation",
    "audit_report",
    "audit_runs",
    "audit_window",
    "bm25_scores",
    "bm25_window",
    "conditions_without",
    "cosine",
    "dcg",
    "dense_window",
    "dot",
    "eligible_documents",
    "explain_bm25",
    "failed_conditions",
    "fixture_from_value",
    "fold",
    "hit_at_k",
    "inverse_document_frequency",
    "load_fixture",
    "macro_mean",
    "metrics_at_k",
    "ndcg_at_k",
    "negative_euclidean",
    "parse_fixture",
    "parse_strict",
    "pieces",
    "public_projection",
    "ranked",
    "read_fixture_bytes",
    "reasons_against",
    "recall_at_k",
    "reciprocal_rank_at_k",
    "rrf",
    "run_experiment",
    "run_query",
    "runs",
    "saturated_frequency",
    "seam",
    "shared_terms",
    "terms",
    "to_json",
]
