"""Solutions of chapter 17: the seed tasks A to E and the seven questions."""

from kbretrieval.offline import Settings, load_fixture, run_query

OWN_CODE = "E777"


def extended(value):
    """Exercise A: an error code of its own, and a synonym that shares no term with its document."""
    upload = next(each for each in value["documents"] if each["id"] == "d-06-upload-e042")
    asked = next(each for each in value["queries"] if each["id"] == "q-e042")
    value["documents"].append(dict(upload, id="d-11-own", title=f"{OWN_CODE} 队列拥堵", text="服务端排队过长。"))
    value["queries"] += [
        dict(asked, id="q-own-code", text=OWN_CODE, qrels={"d-11-own": 3}),
        dict(asked, id="q-own-synonym", text="半天传不上去", qrels={"d-11-own": 3}),
    ]
    return value


# BM25 knows the code alone; the three upload documents share one vector, so ids decide; two votes beat one.
own_prediction = {
    "q-own-code": {
        "bm25": ["d-11-own"],
        "dense": ["d-05-upload-format", "d-06-upload-e042", "d-11-own"],
        "hybrid": ["d-11-own", "d-05-upload-format", "d-06-upload-e042"],
    },
    "q-own-synonym": {
        "bm25": [],
        "dense": ["d-05-upload-format", "d-06-upload-e042", "d-11-own"],
        "hybrid": ["d-05-upload-format", "d-06-upload-e042", "d-11-own"],
    },
}


def planted(value):
    """Exercise B: two baits that both channels would find, and a query of nobody."""
    policy = next(each for each in value["documents"] if each["id"] == "d-01-refund-policy")
    asked = next(each for each in value["queries"] if each["id"] == "q-refund")
    value["documents"] += [
        dict(policy, id="x-foreign", tenant="beta"),
        dict(policy, id="x-archived", status="archived"),
    ]
    value["queries"].append(
        dict(asked, id="q-nobody", subject_groups=[], qrels={}, must_not_return=["x-archived", "x-foreign"])
    )
    return value


def e042_at(width):
    """Exercise C: source ranks of the right document and the fused nDCG."""
    fixture = load_fixture(FIXTURE)  # noqa: F821 - the notebook's own path
    found = run_query(fixture.documents, fixture.query("q-e042"), Settings(rank_window=width))
    ranks = {hit.id: hit.source_ranks for hit in found.hybrid}["d-06-upload-e042"]
    return ranks["bm25"], ranks["dense"], round(found.metrics["hybrid"].ndcg, 6)


def my_hit(ranking, qrels, k):
    """Exercise D: is there any judged document among the first k?"""
    return 1.0 if any(name in qrels for name in ranking[:k]) else 0.0


my_case = (["a", "x"], {"a": 3, "b": 1}, 2)

my_list = {
    "analyzer version": "analyzer",
    "index revision": "analyzer",
    "model digest": "encoder",
    "tokenizer digest": "encoder",
    "dimension": "encoder",
    "normalisation": "encoder",
    "query and passage prefixes": "encoder",
    "build parameters": "vector_search",
    "search parameters": "vector_search",
    "measured recall against exact search": "vector_search",
    "authorisation snapshot": "identity",
    "time until a withdrawn right takes effect": "identity",
    "pool depth": "judgements",
    "judging guide": "judgements",
    "set version": "judgements",
    "latency budget": "operation",
    "freshness budget": "operation",
    "restore drill": "operation",
    "roll-back drill": "operation",
}

tied_pair = ("d-05-upload-format", "d-06-upload-e042")
rephrased = "重复扣款"
two_means = (1.0, 6 / 7)


def missed(some_run, k):
    """Question 4: what a gate overlooks that reads the first k of the fused list alone."""
    return sum(not (found.channel == "hybrid" and found.rank <= k) for found in some_run.violations)


repeated_grades = [3, 3]
two_orders = (["d-05-upload-format", "d-06-upload-e042"], ["d-06-upload-e042", "d-05-upload-format"])
made_anew = {
    "vector of every document",
    "vector of every query",
    "cached vectors",
    "vector index",
    "exact neighbours",
    "score thresholds",
    "baseline metrics",
}
