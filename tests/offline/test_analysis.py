"""Text to terms, and what is lost with each rule."""

import unicodedata
import unittest
from collections.abc import Callable
from unittest import mock

from kbretrieval.offline import analysis, run_experiment, shared_terms, terms
from tests.offline.cases import FIXTURE, TABLE, table
from tests.offline.marks import promise

ORIGINAL = analysis.pieces
WITHOUT_Q_ACCOUNT = (0.583333, 0.666667, 0.652887)


def _nfkc(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _per_character(run: str) -> tuple[str, ...]:
    return tuple(run) if run.isascii() else ORIGINAL(run)


def _single_han(run: str) -> tuple[str, ...]:
    return (run,) if run.isascii() else tuple(run)


def _apart(run: str) -> tuple[str, ...]:
    return (run,) if run.isascii() else tuple(run[start : start + 2] for start in range(0, len(run), 2))


def _no_single(run: str) -> tuple[str, ...]:
    return () if len(run) == 1 and not run.isascii() else ORIGINAL(run)


class Analysis(unittest.TestCase):
    def without(self, part: str, rule: Callable[..., object]) -> tuple[float, float, float]:
        """The BM25 line of the table with one part of the analyzer replaced."""
        with mock.patch.object(analysis, part, rule):
            return table(run_experiment(FIXTURE))["bm25"]

    def terms_without(self, part: str, rule: Callable[..., object], text: str) -> tuple[str, ...]:
        with mock.patch.object(analysis, part, rule):
            return terms(text)

    @promise("OFF-33")
    def test_full_width_and_case_are_folded(self) -> None:
        self.assertEqual(terms("ＲＥＳＥＴ ＰＡＳＳＷＯＲＤ"), ("reset", "password"))
        self.assertEqual(terms("Straße ①②"), ("strasse", "12"))
        self.assertEqual(terms("⼈⼝"), ("人口",))

    @promise("OFF-33")
    def test_without_nfkc_or_casefold_q_account_is_lost_to_bm25(self) -> None:
        self.assertEqual(self.without("fold", str.casefold), WITHOUT_Q_ACCOUNT)
        self.assertEqual(self.without("fold", _nfkc), WITHOUT_Q_ACCOUNT)

    @promise("OFF-33")
    def test_both_passes_of_nfkc_are_needed(self) -> None:
        self.assertEqual(terms("℡"), ("tel",))
        self.assertEqual(self.terms_without("fold", lambda text: _nfkc(text.casefold()), "℡"), ())
        self.assertEqual(terms("\u01f0"), ())
        self.assertEqual(self.terms_without("fold", lambda text: _nfkc(text).casefold(), "\u01f0"), ("j",))

    @promise("OFF-34")
    def test_an_error_code_stays_one_term(self) -> None:
        self.assertEqual(terms("E042 怎么处理"), ("e042", "怎么", "么处", "处理"))
        self.assertEqual(terms("报错e042码"), ("报错", "e042", "码"))
        self.assertEqual(terms("a_b-c.d"), ("a", "b", "c", "d"))

    @promise("OFF-34")
    def test_a_code_cut_into_characters_meets_other_codes(self) -> None:
        self.assertEqual(shared_terms("E042", "E024"), ())
        with mock.patch.object(analysis, "pieces", _per_character):
            self.assertEqual(shared_terms("E042", "E024"), ("0", "2", "4", "e"))
            score = run_experiment(FIXTURE).query("q-e042").bm25[0].score
        self.assertEqual(round(score, 6), 3.773007)

    @promise("OFF-35")
    def test_han_runs_give_overlapping_bigrams(self) -> None:
        self.assertEqual(terms("上传报错"), ("上传", "传报", "报错"))
        self.assertEqual(terms("税"), ("税",))
        self.assertEqual(terms("税，费"), ("税", "费"))
        self.assertEqual(terms("𠮷野家"), ("𠮷野", "野家"))
        self.assertEqual(terms(" ，。"), ())

    @promise("OFF-35")
    def test_bigrams_that_do_not_overlap_lose_q_refund(self) -> None:
        self.assertEqual(self.without("pieces", _apart), (0.583333, 0.666667, 0.652887))
        with mock.patch.object(analysis, "pieces", _apart):
            self.assertEqual(run_experiment(FIXTURE).query("q-refund").bm25, ())

    @promise("OFF-35")
    def test_without_the_rule_for_a_run_of_one_it_has_no_term(self) -> None:
        self.assertEqual(self.terms_without("pieces", _no_single, "税"), ())
        self.assertEqual(self.without("pieces", _no_single), TABLE["bm25"])

    @promise("OFF-38")
    def test_the_two_wordings_of_a_double_charge_share_no_term(self) -> None:
        self.assertEqual(shared_terms("钱被扣了两次", "重复扣款"), ())
        document = FIXTURE.document("d-04-double-charge")
        self.assertEqual(shared_terms(FIXTURE.query("q-double-charge").text, document.searchable), ())

    @promise("OFF-38")
    def test_single_characters_would_make_them_meet(self) -> None:
        with mock.patch.object(analysis, "pieces", _single_han):
            self.assertEqual(shared_terms("钱被扣了两次", "重复扣款"), ("扣",))
            self.assertEqual(run_experiment(FIXTURE).query("q-double-charge").ids("bm25"), ("d-04-double-charge",))
        self.assertEqual(self.without("pieces", _single_han), (0.916667, 1.0, 0.98622))


if __name__ == "__main__":
    unittest.main()
