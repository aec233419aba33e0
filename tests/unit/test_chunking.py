"""Windows over a projection (CHK-1 to CHK-7), judged by independent and obvious versions."""

import hashlib
import time
import unicodedata
from collections.abc import Callable
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from kbretrieval import Context, Index, chunking
from kbretrieval.chunking import Clusters, chunks, windows
from kbretrieval.projection import Heading, Projection, project
from tests.unit.doubles import Table, code_of, rank

SIZES = st.integers(1, 40).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))
PLAIN = st.text(st.sampled_from("甲乙丙，。ab 1\n\n\n"), max_size=400)
# Parts of clusters of every kind, so that random texts are full of them.
PARTS = "甲a\n 👨👩\u200d🏽👍🇨🇳🇫\u0301\u0323\ufe0f\u20e31ᄀ가ᅡᆨक्षि\u0600\u0e33กか\u3099\u0bbe"
PARTS += "🏴\U000e0067\U000e007f\u302a\u2029\x07"
CLUSTERED = st.text(st.sampled_from(PARTS), max_size=200)


def obvious(body: str, size: int, overlap: int) -> list[tuple[int, int]]:
    """CHK-2 and CHK-3 word by word, for text in which every code point is a cluster."""
    made, start = [], 0
    while start < len(body):
        end = min(start + size, len(body))
        if end < len(body) and "\n\n" in body[start + size // 2 : end]:
            end = start + size // 2 + body[start + size // 2 : end].rindex("\n\n") + 2
        made.append((start, end))
        if end == len(body):
            break
        start = max(start + 1, end - overlap)
    return made


def boundaries(text: str) -> set[int]:
    """Cluster boundaries, by one pass of \\X over the whole text."""
    return {0} | {match.end() for match in regex.finditer(r"\X", text)}


@pytest.mark.promise("CHK-1")
@pytest.mark.parametrize(
    ("size", "overlap"),
    [(0, 0), (-1, 0), (4097, 0), (10, 10), (10, 11), (10, -1), (True, 0), (10, False), (10.0, 0), ("10", 0), (None, 0)],
)
def test_a_window_out_of_range_is_refused(tmp_path: Path, size: object, overlap: object) -> None:
    assert code_of(windows, "甲", size, overlap) == "invalid_chunk_window"
    if size is not None:
        file = tmp_path / "kb"
        assert code_of(Index.open, file, None, size, overlap) == "invalid_chunk_window"
        assert not file.exists()


@pytest.mark.promise("CHK-2", "CHK-3", "CHK-6")
@settings(max_examples=400)
@given(PLAIN, SIZES)
def test_plain_text_is_cut_exactly_by_the_rule(body: str, window: tuple[int, int]) -> None:
    assert windows(body, *window) == obvious(body, *window)


@pytest.mark.promise("CHK-2")
@pytest.mark.parametrize(
    ("body", "size", "ends"),
    [
        ("甲" * 10, 4, [4, 8, 10]),
        ("甲甲\n\n甲甲甲甲", 6, [6, 8]),  # the blank line begins in the first half
        ("甲甲甲\n\n甲甲甲", 6, [5, 8]),
        ("甲甲甲甲\n\n甲甲", 6, [6, 8]),
        ("甲甲甲甲甲\n\n甲", 6, [6, 8]),  # its second line end lies outside
        ("甲甲甲\n\n\n甲甲", 6, [6, 8]),  # the last one wins
        ("甲甲甲\n\n", 5, [5]),  # a window that reaches the end stops there
        ("甲甲\n\n甲", 5, [5]),
    ],
)
def test_a_window_ends_after_the_last_blank_line_in_its_second_half(body: str, size: int, ends: list[int]) -> None:
    assert [end for _, end in windows(body, size, 0)] == ends


@pytest.mark.promise("CHK-6")
def test_characters_that_are_skipped_over_never_join_each_other() -> None:
    simple = "".join(regex.findall(chunking._SIMPLE, "".join(map(chr, range(0x110000)))))
    assert len(simple) > 21_000
    assert regex.fullmatch(r"[\p{GCB=Other}\p{GCB=LF}]+", simple)
    assert not regex.search(r"\p{Extended_Pictographic}", simple)


@pytest.mark.promise("CHK-3", "CHK-6")
@settings(max_examples=600)
@given(CLUSTERED, SIZES)
def test_every_code_point_is_covered_and_no_cluster_is_cut(body: str, window: tuple[int, int]) -> None:
    size, overlap = window
    made, allowed = windows(body, size, overlap), boundaries(body)
    assert [Clusters(body).back(at) == at for at in range(len(body) + 1)] == [
        at in allowed for at in range(len(body) + 1)
    ]
    assert bool(made) == bool(body)
    if not made:
        return
    assert made[0][0] == 0 and made[-1][1] == len(body)
    for (start, end), (following, _) in pairwise(made):
        assert start < following <= end  # progress, and nothing skipped
    for start, end in made:
        assert 0 < end - start <= size
        whole = [b for b in allowed if start < b <= start + size]
        if end not in allowed:
            assert not whole and end == start + size  # a cluster longer than the window
        if start not in allowed:
            assert any(start == earlier for _, earlier in made)


@pytest.mark.promise("CHK-6")
@given(CLUSTERED, SIZES)
def test_an_end_moves_back_to_the_nearest_boundary_and_no_further(body: str, window: tuple[int, int]) -> None:
    size, overlap = window
    allowed = sorted(boundaries(body))
    for start, end in windows(body, size, overlap):
        if end == len(body):
            continue
        wanted = start + size
        blank = body.rfind("\n\n", start + size // 2, wanted)
        wanted = wanted if blank < 0 else blank + 2
        nearest = max(b for b in allowed if b <= wanted)
        assert end == (nearest if nearest > start else start + size)


@pytest.mark.promise("CHK-3", "CHK-6", "PRJ-2")
def test_emoji_families_flags_and_marks_stay_whole(tmp_path: Path, alice: Context) -> None:
    """C066: ends move back to the last boundary, a start forward where back would be no progress."""
    body = "甲👨\u200d👩\u200d👧\u200d👦乙丙q\u0323\u0307丁戊👍🏽己"

    def cut(name: str, text: str, size: int, overlap: int) -> list[tuple[int, int, str]]:
        with Index.open(tmp_path / name, Table("table-2"), size, overlap) as index:
            index.upsert("acme", name, 1, "markdown", text, ["alice"])
            hits = index.search("x", alice, limit=100, mode="vector")
            assert sorted(rank(h, "vector") or 0 for h in hits) == list(range(1, len(hits) + 1))
            return sorted((h.start, h.end, h.text) for h in hits)

    assert cut("smile", "😀" * 81, 80, 16) == [(0, 80, "😀" * 80), (64, 81, "😀" * 17)]
    apart, lap = cut("apart", body, 8, 0), cut("lap", body, 8, 3)
    assert [row[:2] for row in apart] == [(0, 8), (8, 15), (15, 18)]
    assert [row[:2] for row in lap] == [(0, 8), (1, 9), (8, 15), (10, 18)]
    assert "".join(text for _, _, text in apart) == unicodedata.normalize("NFC", body)


@pytest.mark.promise("CHK-6")
def test_a_cluster_longer_than_the_window_is_cut_at_its_size() -> None:
    assert windows("q" + "\u0323" * 9, 4, 0) == [(0, 4), (4, 8), (8, 10)]
    assert windows("甲" + "q" + "\u0323" * 5 + "乙", 4, 1) == [(0, 1), (1, 5), (5, 8)]


@pytest.mark.promise("CHK-6", "LEX-5")
def test_empty_and_blank_bodies(index: Index, alice: Context) -> None:
    assert windows("", 10, 0) == [] and chunks(project("", "text")) == ()
    assert index.upsert("acme", "empty", 1, "text", "", ["alice"]).chunks == 0
    assert index.upsert("acme", "blank", 1, "text", " \n\n ", ["alice"]).chunks == 1
    assert list(index.search("甲", alice)) == []
    assert index.search("甲", alice).channel("lexical").eligible == 1
    assert index.search("甲", alice).channel("vector").scored == 0
    assert index.check() == ()


@pytest.mark.promise("CHK-4")
def test_a_chunk_carries_coordinates_headings_and_digest() -> None:
    body = "# 制度\n\n" + "甲" * 20 + "\n\n## 住宿\n\n" + "乙" * 20 + "\n\n### 限额\n\n丙\n\n## 交通\n\n丁"
    made = chunks(project(body, "markdown"), 24, 0)
    assert [c.number for c in made] == list(range(len(made)))
    for chunk in made:
        assert chunk.text == body[chunk.start : chunk.end]
        assert chunk.sha256 == hashlib.sha256(chunk.text.encode()).hexdigest()
        assert chunk.heading == (chunk.heading_path[-1] if chunk.heading_path else "")
    at = {
        body.index(mark): path for mark, path in [("甲", ("制度",)), ("乙", ("制度", "住宿")), ("丁", ("制度", "交通"))]
    }
    for position, path in at.items():
        assert [c.heading_path for c in chunks(project(body, "markdown"), 1, 0)][position] == path


@pytest.mark.promise("CHK-4")
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 6)), max_size=8), SIZES)
def test_the_heading_path_is_the_one_in_force(places: list[tuple[int, int]], window: tuple[int, int]) -> None:
    headings = tuple(Heading(start, level, f"h{start}") for start, level in sorted(dict(places).items()))
    for chunk in chunks(Projection("t", "甲" * 70, headings, "", "", 0), *window):
        path: list[Heading] = []
        for heading in headings:
            if heading.start <= chunk.start:
                path = [h for h in path if h.level < heading.level] + [heading]
        if not path:
            path = [h for h in headings if h.start < chunk.end][:1]
        assert chunk.heading_path == tuple(h.text for h in path)


@pytest.mark.promise("CHK-5")
def test_chunk_keys_are_never_used_again(index: Index, alice: Context) -> None:
    seen: set[int] = set()
    for revision in range(1, 6):
        index.upsert("acme", "d", 2 * revision - 1, "text", "退款" * 300, ["alice"], restore=True)
        keys = {hit.chunk_key for hit in index.search("退款", alice, limit=100)}
        assert len(keys) == 4 and not keys & seen and min(keys) > max(seen, default=0)
        seen |= keys
        index.delete("acme", "d", 2 * revision)


def _growth(make: Callable[[int], Projection], sizes: tuple[int, ...]) -> float:
    """Return the mean growth of the processor time from one size to the next, each the best of five."""
    best = []
    for size in sizes:
        projection, times = make(size), []
        for _ in range(5):
            begin = time.process_time()
            chunks(projection)
            times.append(time.process_time() - begin)
        best.append(min(times))
    return float((best[-1] / best[0]) ** (1 / (len(sizes) - 1)))


def _flat(pattern: str) -> Callable[[int], Projection]:
    return lambda size: Projection("t", pattern * (size // len(pattern)), (), "", "", 0)


def _headings(size: int) -> Projection:
    parts = [f"## 第{n}节\n\n说明{n}\n\n" for n in range(size // 50)]
    starts = accumulate(map(len, parts), initial=0)
    headings = tuple(Heading(start, 2, part[3:8]) for start, part in zip(starts, parts, strict=False))
    return Projection("t", "".join(parts), headings, "", "", 0)


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.promise("CHK-7")
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("sentences", _flat("甲乙丙丁戊己庚辛壬癸。")),
        ("blank lines", _flat("甲\n\n")),
        ("flags", _flat("🇨")),
        ("families", _flat("👨\u200d")),
        ("one cluster", _flat("\u0301")),
        ("headings", _headings),
    ],
)
def test_cutting_is_linear(name: str, make: Callable[[int], Projection]) -> None:
    """C070, first half: each doubling of the text doubles the time; a quadratic cutter would take four times."""
    sizes = (250_000, 500_000, 1_000_000, 2_000_000) if name == "sentences" else (50_000, 100_000, 200_000, 400_000)
    assert _growth(make, sizes) < 2.7
