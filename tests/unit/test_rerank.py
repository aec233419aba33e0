"""The title rule (RRK-1, RRK-2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbretrieval import Context, Index
from kbretrieval.analysis import terms
from kbretrieval.fusion import Fused
from kbretrieval.rerank import RERANKERS, rerank, title_overlap
from tests.unit.doubles import docs

CANDIDATES = st.dictionaries(
    st.integers(1, 50), st.tuples(st.sampled_from([0.1, 0.2, 0.3]), st.sampled_from([0.0, 0.5, 1.0])), max_size=20
)


@pytest.mark.promise("RRK-1")
@given(CANDIDATES)
def test_the_order_is_overlap_then_fused_value_then_key(made: dict[int, tuple[float, float]]) -> None:
    fused = [Fused(key, value, ()) for key, (value, _) in made.items()]
    overlaps = {key: overlap for key, (_, overlap) in made.items()}
    by_title = [item.key for item in rerank(fused, overlaps, "title")]
    assert by_title == sorted(made, key=lambda key: (-made[key][1], -made[key][0], key))
    plain = [item.key for item in rerank(fused, overlaps, "none")]
    assert plain == sorted(made, key=lambda key: (-made[key][0], key))


@pytest.mark.promise("RRK-1", "LEX-5")
@given(st.text(st.sampled_from("退款政策a b"), max_size=20), st.text(st.sampled_from("退款政策a b"), max_size=20))
def test_the_overlap_is_a_share_of_distinct_query_terms(query: str, title: str) -> None:
    asked = terms(query)
    shared = {term for term in asked if term in terms(title)}
    assert title_overlap(asked, title) == (len(shared) / len(set(asked)) if asked else 0.0)


@pytest.mark.promise("RRK-2")
def test_a_rule_is_named_with_its_version_and_never_called_a_model() -> None:
    assert set(RERANKERS) == {"none", "title"}
    assert all("/" in name and "model" not in name for name in RERANKERS.values())


@pytest.mark.promise("RRK-1", "LEX-5")
def test_the_title_rule_uses_the_channels_terms(index: Index, alice: Context) -> None:
    index.upsert("acme", "plain", 1, "markdown", "# 别的\n\nＶＰＮ ＶＰＮ 账号", ["alice"])
    index.upsert("acme", "titled", 1, "markdown", "# ＶＰＮ\n\n" + "很长的说明" * 20, ["alice"])
    hits = index.search("vpn 账号", alice, rerank="title")
    assert docs(hits) == ["titled", "plain"] and [hit.title_overlap for hit in hits] == [0.5, 0.0]
    assert docs(index.search("vpn 账号", alice)) == ["plain", "titled"]
    assert [hit.title_overlap for hit in index.search("vpn 账号", alice)] == [0.0, 0.5]  # told, not used
    long = " ".join(f"w{n}" for n in range(64)) + " vpn"  # the 65th term takes part in nothing
    index.upsert("acme", "w", 1, "text", "w1", ["alice"])
    assert [(h.doc_id, h.title_overlap) for h in index.search(long, alice, rerank="title")] == [("w", 1 / 64)]
