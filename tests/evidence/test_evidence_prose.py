"""Numbers in prose, bound to evidence: EVD-9."""

from pathlib import Path

import pytest

from kbretrieval.evidence import Mismatch, check_text, fill_text, unbound_numbers
from kbretrieval.evidence.errors import BindingInvalid
from tests.evidence.evidence_claims import MakeClaim, fill

MEAN = "ch07-ranks.json#/deterministic/aggregates/mean_rank/value"
ROWS = "ch07-ranks.json#/deterministic/rows/1/rank"


def bound(source: str, shown: str) -> str:
    return f"<!-- evidence: {source} -->{shown}<!-- /evidence -->"


@pytest.fixture
def written(make_claim: MakeClaim, folder: Path) -> Path:
    fill(make_claim()).write()
    return folder


@pytest.mark.promise("EVD-9")
def test_equal_numbers_hold_and_others_are_reported_with_their_line(written: Path) -> None:
    text = f"平均名次 {bound(MEAN, '1.5')}，\n第二行 {bound(ROWS, '3')} 和 {bound(MEAN, '1.50')}。"
    assert check_text(text, written) == [Mismatch(2, MEAN, "1.50", "1.5"), Mismatch(2, ROWS, "3", "2")]


@pytest.mark.promise("EVD-9")
def test_prose_is_filled_from_evidence_and_then_holds(written: Path) -> None:
    text = (
        f"平均 {bound(MEAN, '?')}，即 {bound(MEAN + '; as=percent', '')}，"
        f"{bound(MEAN + '; as=.2', '0')}，{bound(ROWS, 'x')}。"
    )
    filled = fill_text(text, written)
    assert filled == (
        f"平均 {bound(MEAN, '1.5')}，即 {bound(MEAN + '; as=percent', '150%')}，"
        f"{bound(MEAN + '; as=.2', '1.50')}，{bound(ROWS, '2')}。"
    )
    assert check_text(filled, written) == []
    assert len(check_text(text, written)) == 4


@pytest.mark.promise("EVD-9")
@pytest.mark.parametrize(
    ("alt", "held"),
    [("平均 1.5 名，第 2 名", True), ("平均 11.5 名，第 2 名", False), ("平均 1.5 名，第 2.1 名", False)],
)
def test_alternative_texts_hold_the_values(written: Path, alt: str, held: bool) -> None:
    text = f"<!-- evidence-alt: {MEAN}, {ROWS} -->\n![{alt}](ranks.png)"
    assert (check_text(text, written) == []) is held


@pytest.mark.promise("EVD-9")
@pytest.mark.parametrize(
    "text",
    [
        f"<!-- evidence: {MEAN} -->1.5",
        "1.5<!-- /evidence -->",
        f"<!-- evidence: {MEAN} -->1.5<!-- evidence: {MEAN} -->1.5<!-- /evidence -->",
        f"<!-- evidence-alt: {MEAN} --> no picture",
        bound("ch07-ranks.json#/deterministic/absent", "1"),
        bound("ch07-ranks.json#/deterministic/rows/9/rank", "1"),
        bound("ch07-ranks.json#/deterministic/rows", "1"),
        bound("ch07-ranks.json#/claim/id; as=percent", "1"),
        bound("absent.json#/claim/id", "1"),
        bound("../ch07-ranks.json#/claim/id", "1"),
        bound("ch07-ranks.json", "1"),
    ],
)
def test_a_binding_that_binds_nothing_is_refused(written: Path, text: str) -> None:
    with pytest.raises(BindingInvalid):
        check_text(text, written)


@pytest.mark.promise("EVD-9")
def test_numbers_outside_every_binding_are_listed() -> None:
    text = f"召回 0.9 和 {bound(MEAN, '1.5')}，[链接](a/1.5)，版本 1.2.3，13 个问题，`2.5`，约 50%。"
    assert unbound_numbers(text) == ["0.9", "50%"]
