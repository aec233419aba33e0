"""One run: for every query filter, then two channels, then fusion, then metrics; at the end the gate looks at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from kbretrieval.offline.analysis import Analyzer, terms
from kbretrieval.offline.bm25 import bm25_window
from kbretrieval.offline.dense import MEASURES, dense_window
from kbretrieval.offline.eligibility import CONDITIONS, Condition, eligible_documents
from kbretrieval.offline.errors import SettingOutOfRange, UnknownId, UnknownMetric
from kbretrieval.offline.fusion import RRF_CONSTANT, Fused, rrf
from kbretrieval.offline.gate import Violation, audit_window
from kbretrieval.offline.metrics import Metrics, macro_mean, metrics_at_k
from kbretrieval.offline.model import Document, Fixture, Query
from kbretrieval.offline.ranking import Ranked, positive

CHANNELS = ("bm25", "dense", "hybrid")
MAX_SETTING = 1_000_000


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run may turn: k of the metrics, candidates per channel, RRF's constant, the vector measure.

    Whole numbers from 1 to 1,000,000, else `SettingOutOfRange`; another measure than cosine, dot and euclidean:
    `UnknownMetric` (OFF-66). `top_k` may exceed `rank_window` (OFF-44).

    Example:
        >>> Settings(rank_window=1).top_k
        3
    """

    top_k: int = 3
    rank_window: int = 5
    rrf_constant: int = RRF_CONSTANT
    metric: str = "cosine"

    def __post_init__(self) -> None:
        for name in ("top_k", "rank_window", "rrf_constant"):
            value = positive(getattr(self, name), name)
            if value > MAX_SETTING:
                raise SettingOutOfRange(f"{name} above {MAX_SETTING} given, at most {MAX_SETTING} expected")
        if self.metric not in MEASURES:
            raise UnknownMetric(f"{self.metric!a} given, one of {', '.join(MEASURES)} expected")


@dataclass(frozen=True, slots=True)
class QueryRun:
    """One query's complete windows; `bm25` and `dense` hold at most `rank_window` each, `hybrid` their union.

    `metrics` maps channel to its metrics, None where the query has no judgements (OFF-49).
    """

    query: Query
    bm25: tuple[Ranked, ...]
    dense: tuple[Ranked, ...]
    hybrid: tuple[Fused, ...]
    metrics: Mapping[str, Metrics | None]

    def ids(self, channel: str) -> tuple[str, ...]:
        """Return the ids of one channel's complete window in rank order; unknown channel: `UnknownId`."""
        windows: dict[str, Sequence[Ranked | Fused]] = {
            "bm25": self.bm25,
            "dense": self.dense,
            "hybrid": self.hybrid,
        }
        if channel not in windows:
            raise UnknownId(f"channel {channel!a} asked for, known are {', '.join(CHANNELS)}")
        return tuple(hit.id for hit in windows[channel])


@dataclass(frozen=True, slots=True)
class Run:
    """A whole run: queries in ascending order of id, macro metrics per channel, and what the gate found."""

    fixture: Fixture
    settings: Settings
    queries: tuple[QueryRun, ...]
    macro: Mapping[str, Metrics | None]
    violations: tuple[Violation, ...]

    def query(self, query_id: str) -> QueryRun:
        """Return the run of one query, or raise `UnknownId`."""
        for found in self.queries:
            if found.query.id == query_id:
                return found
        raise UnknownId(f"query {query_id!a} asked for, {len(self.queries)} queries known")


def run_query(
    documents: Sequence[Document],
    query: Query,
    settings: Settings | None = None,
    *,
    conditions: Mapping[str, Condition] = CONDITIONS,
    analyzer: Analyzer = terms,
) -> QueryRun:
    """Return one query's windows and metrics; the filter runs once, before either channel scores (OFF-30).

    `conditions` and `analyzer` exist for experiments that take a rule away.

    Example:
        >>> memo = Document("d", "T", "x", "alpha", ("guest",), "published", "en", "app", "r1", (1.0,))
        >>> asked = Query("q", "x", "alpha", ("guest",), ("en",), ("app",), (1.0,), {"d": 3}, ())
        >>> dict(run_query([memo], asked).hybrid[0].source_ranks)
        {'bm25': 1, 'dense': 1}
    """
    chosen = settings if settings is not None else Settings()
    eligible = eligible_documents(documents, query, conditions)
    lexical = bm25_window(eligible, query.text, chosen.rank_window, analyzer)
    dense = dense_window(eligible, query.vector, chosen.rank_window, chosen.metric)
    sources = {"bm25": [hit.id for hit in lexical], "dense": [hit.id for hit in dense]}
    hybrid = rrf(sources, chosen.rrf_constant, chosen.rank_window)
    rankings = {**sources, "hybrid": [hit.id for hit in hybrid]}
    metrics = {channel: metrics_at_k(ids, query.qrels, chosen.top_k) for channel, ids in rankings.items()}
    return QueryRun(query, lexical, dense, hybrid, MappingProxyType(metrics))


def run_experiment(
    fixture: Fixture,
    settings: Settings | None = None,
    *,
    conditions: Mapping[str, Condition] = CONDITIONS,
    analyzer: Analyzer = terms,
) -> Run:
    """Return the run of every query, the macro means, and the gate's findings over all windows (OFF-49, OFF-53).

    Not promised: anything about real corpora or real models; the figures describe this fixture (OFF-20).

    Example:
        >>> from kbretrieval.offline.model import Representation
        >>> run_experiment(Fixture(Representation("toy"), (), ())).violations
        ()
    """
    chosen = settings if settings is not None else Settings()
    queries = tuple(
        run_query(fixture.documents, query, chosen, conditions=conditions, analyzer=analyzer)
        for query in fixture.queries
    )
    macro = {channel: macro_mean(run.metrics[channel] for run in queries) for channel in CHANNELS}
    return Run(fixture, chosen, queries, MappingProxyType(macro), audit_runs(fixture, queries))


def audit_runs(fixture: Fixture, queries: Sequence[QueryRun]) -> tuple[Violation, ...]:
    """Return the gate's findings over the complete windows of all channels, by query, channel, rank (OFF-53).

    Example:
        >>> from kbretrieval.offline.model import Representation
        >>> audit_runs(Fixture(Representation("toy"), (), ()), [])
        ()
    """
    documents = {document.id: document for document in fixture.documents}
    return tuple(
        violation
        for run in queries
        for channel in CHANNELS
        for violation in audit_window(documents, run.query, channel, run.ids(channel))
    )
