"""Two checks against other people's tables: which characters are Han, and what a BM25 score is."""

import re

import bm25s
import numpy as np
import pytest
import regex

from kbretrieval.offline import bm25_scores, pieces, terms
from kbretrieval.offline.analysis import HAN_RANGES
from tests.offline.cases import FIXTURE

SETTLED = [*range(0xD800), *range(0xE000, 0x10000), *range(0x20000, 0x2A6E0)]


@pytest.mark.promise("OFF-35")
def test_han_is_what_unicode_calls_han() -> None:
    """Over the planes' settled parts; later extensions depend on the other library's Unicode version."""
    ours = {code for first, last in HAN_RANGES for code in range(first, last + 1)}
    text = "".join(map(chr, SETTLED))
    assert {ord(character) for character in regex.findall(r"\p{Script=Han}", text)} == ours & set(SETTLED)


@pytest.mark.promise("OFF-35")
def test_bigrams_join_to_their_run_again() -> None:
    for document in FIXTURE.documents:
        for run in re.findall("[\u4e00-\u9fff]+", document.text):
            grams = pieces(run)
            assert grams[0] + "".join(gram[-1] for gram in grams[1:]) == run


@pytest.mark.promise("OFF-36")
def test_bm25s_gives_the_same_scores() -> None:
    """Its `lucene` variant has our idf and leaves out the constant factor k1 + 1, as Lucene does."""
    texts = [document.searchable for document in FIXTURE.documents]
    judge = bm25s.BM25(method="lucene", k1=1.2, b=0.75, dtype="float64")
    judge.index([list(terms(text)) for text in texts], show_progress=False)
    known = {term for text in texts for term in terms(text)}
    for query in FIXTURE.queries:
        theirs = judge.get_scores(sorted(set(terms(query.text)) & known))
        assert np.allclose(bm25_scores(texts, query.text), theirs * 2.2, rtol=1e-9, atol=0.0), query.id
