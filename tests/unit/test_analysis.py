"""Terms (LEX-1, LEX-2, LEX-4, LEX-5): the book's on its fixture, and every script beyond it."""

import json
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbretrieval import Context, Index
from kbretrieval.analysis import (
    MAX_QUERY_TERMS,
    any_terms,
    folded,
    is_single_ideograph,
    query_terms,
    term_code,
    term_codes,
    terms,
)
from tests.unit.doubles import MODES, code_of, docs, quotes

BOOK_RUN = re.compile("[a-z0-9_]+|[\u4e00-\u9fff]+")
BIGRAM_SCRIPTS = "\u6f22\u5b57\u3005\u3007\u3042\u30a2\u30fc\ud55c\uae00\u3105\U00020bb7\U00030000"


def book_terms(text: str) -> list[str]:
    """The book's rule, in its own scope: ASCII words and runs of basic Han."""
    made: list[str] = []
    for run in BOOK_RUN.findall(text.lower()):
        pairs = [run[at : at + 2] for at in range(len(run) - 1)]
        made += [run] if run[0].isascii() or not pairs else pairs
    return made


@pytest.mark.promise("LEX-1")
def test_on_the_fixture_exactly_the_books_terms(root: Path) -> None:
    strings: list[str] = []

    def collect(value: object) -> None:
        if isinstance(value, str):
            strings.append(value)
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            collect(item)

    for name in ("corpus.json", "queries.json"):
        collect(json.loads((root / "fixtures" / name).read_text(encoding="utf-8")))
    assert len(strings) > 50 and any("发票" in text for text in strings)
    assert [terms(text) for text in strings] == [book_terms(text) for text in strings]


@pytest.mark.promise("LEX-1")
@given(st.text(st.sampled_from("退款政策abAB09_ -。，！\n"), max_size=60))
def test_in_the_books_scope_exactly_the_books_terms(text: str) -> None:
    assert terms(text) == book_terms(text)


TABLE = [
    ("退款政策", ["退款", "款政", "政策"]),
    ("税", ["税"]),
    ("重跑gen-itgc后再", ["重跑", "gen", "itgc", "后再"]),
    ("refund_policy E042", ["refund_policy", "e042"]),
    ("𠮷祥", ["𠮷祥"]),
    ("時々接続", ["時々", "々接", "接続"]),
    ("二〇二六", ["二〇", "〇二", "二六"]),
    ("サーバー", ["サー", "ーバ", "バー"]),
    ("ｻｰﾊﾞｰ", ["サー", "ーバ", "バー"]),
    ("か\u3099く", ["がく"]),
    ("환불 규정", ["환불", "규정"]),
    ("ㄅㄆㄇ", ["ㄅㄆ", "ㄆㄇ"]),
    ("日本のテスト語한", ["日本", "本の", "のテ", "テス", "スト", "ト語", "語한"]),
    ("２０２６年ＶＰＮ账号", ["2026", "年", "vpn", "账号"]),
    ("café CRÈME Straße", ["café", "crème", "strasse"]),
    ("Возврат ΣΊΣΥΦΟΣ", ["возврат", "σίσυφοσ"]),
    ("हिन्दी", ["हिन्दी"]),
    ("٣٤ ४२", ["٣٤", "४२"]),
    ("⼈⼝ ⾦", ["人口", "金"]),
    ("㍿ ﬁne ① ½", ["株式", "式会", "会社", "fine", "1", "1", "2"]),
    ("İstanbul", ["i\u0307stanbul"]),
    ("\u01f0 J\u030c", ["\u01f0", "\u01f0"]),  # case folding takes it apart, and it is put together again
    ("葛\U000e0100城", ["葛城"]),
    ("don't x.y a+b", ["don", "t", "x", "y", "a", "b"]),
    ("😀 … — 。", []),
    ("ไทย", ["ไทย"]),
]


@pytest.mark.promise("LEX-1", "LEX-2")
@pytest.mark.parametrize(("text", "expected"), TABLE, ids=[ascii(row[0])[:30] for row in TABLE])
def test_terms_of_every_script(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.promise("LEX-2")
@pytest.mark.parametrize(
    "mark", list("\u200b\u200c\u200d\u2060\ufeff\u00ad\u180e\u200e\u202e\u2066\ufe0f\u034f\U000e0061\U000e0100\u3164")
)
@pytest.mark.parametrize("word", ["退款", "password", "환불", "возврат", "2026"])
def test_an_invisible_character_does_not_hide_a_word(word: str, mark: str) -> None:
    assert terms(mark.join(word)) == terms(word)
    assert terms(mark + word + mark) == terms(word)
    assert terms(mark) == []


LETTERS = st.characters(categories=["Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No"])


@pytest.mark.promise("LEX-2")
@settings(max_examples=500)
@given(st.text(st.one_of(LETTERS, st.sampled_from(BIGRAM_SCRIPTS + " -。_\u0301\u3099")), max_size=30))
def test_no_letter_or_digit_disappears(text: str) -> None:
    wanted = [c for c in folded(text) if unicodedata.category(c)[0] in "LN" or c == "_"]
    got = terms(text)
    assert set(wanted) == {c for term in got for c in term if unicodedata.category(c)[0] in "LN" or c == "_"}
    assert all(got) and not any(c.isspace() for term in got for c in term)


@pytest.mark.promise("LEX-2")
@settings(max_examples=300)
@given(st.characters(categories=["Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No"]))
def test_every_letter_and_digit_is_found_by_itself(character: str) -> None:
    if folded(character):
        assert terms(character) and set(terms(character)) <= set(terms(f"。{character} "))


@pytest.mark.promise("LEX-2")
@given(st.text(max_size=60))
def test_terms_depend_on_the_folded_text_alone(text: str) -> None:
    assert terms(text) == terms(folded(text)) == terms(unicodedata.normalize("NFD", text))
    assert folded(folded(text)) == folded(text)


@pytest.mark.promise("LEX-2")
@given(st.text(st.sampled_from("退款政策AbÉé09_が "), max_size=30))
def test_case_and_width_are_folded_and_accents_kept(text: str) -> None:
    assert terms(text.upper()) == terms(text.lower())
    assert terms("cafe") != terms("café")
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)
    assert terms(wide) == terms(text)


@pytest.mark.promise("LEX-4")
@given(st.lists(st.sampled_from([f"w{n:02}" for n in range(90)]), max_size=120))
def test_a_query_has_its_first_64_distinct_terms(words: list[str]) -> None:
    used, count = query_terms(" ".join(words))
    distinct = list(dict.fromkeys(words))
    assert used == distinct[:MAX_QUERY_TERMS] and count == len(distinct)


@given(st.lists(st.text(st.sampled_from("退款ab𠮷\U0010ffff"), min_size=1, max_size=5), max_size=30))
def test_term_codes_are_distinct_and_positive(words: list[str]) -> None:
    codes = {word: term_code(word) for word in words}
    assert len(set(codes.values())) == len(codes)
    assert all(0 < code < 2**63 for code in codes.values())
    assert sorted(term_codes(words).tolist()) == sorted(codes[word] for word in words)


def test_a_single_ideograph_is_one_han_kana_or_hangul_character() -> None:
    assert all(is_single_ideograph(c) for c in BIGRAM_SCRIPTS)
    assert not any(is_single_ideograph(t) for t in ("a", "1", "_", "退款", "é", "ก"))


def _fill(index: Index, bodies: dict[str, str]) -> None:
    for name, body in bodies.items():
        index.upsert("acme", name, 1, "markdown", body, ["alice"])


@pytest.mark.promise("LEX-1", "LEX-9", "RRF-3")
def test_short_chinese_words_are_found(index: Index, alice: Context) -> None:
    """C001."""
    bodies = {"deploy": "# 发布手册\n\n夜间发布一律静默部署，不弹通知。", "invoice": "# 报销\n\n酒店发票七日内提交。"}
    _fill(index, bodies | {"seat": "# 座位\n\nA区 票 B区"})
    fts = {
        q: docs(index.search(q, alice, mode="lexical", lexical="fts5"))
        for q in ["静默", "部署", "静默部署", "发票", "票", "区", "酒", "知周"]
    }
    assert fts == {
        **{key: ["deploy"] for key in ("静默", "部署", "静默部署")},
        "发票": ["invoice"],
        "票": ["seat"],
        "区": ["seat"],
        "酒": [],
        "知周": [],
    }
    trace = index.search("酒", alice, mode="lexical", lexical="fts5").channel("lexical")
    assert (trace.state, trace.terms_used, trace.returned) == ("run", 1, 0)
    own = {
        q: sorted(docs(index.search(q, alice, mode="lexical")))
        for q in ["静默", "部署", "发票", "票", "区", "酒", "知周"]
    }
    assert own == {
        "静默": ["deploy"],
        "部署": ["deploy"],
        "发票": ["invoice"],
        "票": ["invoice", "seat"],
        "区": ["seat"],
        "酒": ["invoice"],
        "知周": [],
    }


@pytest.mark.promise("LEX-1", "LEX-2", "LEX-3")
@pytest.mark.parametrize("lexical", ["isolated", "fts5"])
def test_latin_words_beside_chinese_identifiers_and_accents(index: Index, alice: Context, lexical: str) -> None:
    """C002."""
    bodies = {
        "batch": "# 对账\n\n凌晨失败后重跑gen-itgc后再核对。",
        "api": "# 接口\n\n字段 refund_policy 返回可退天数。",
    }
    bodies |= {
        "cafe": "# 茶水间\n\ncafé 每天八点开门。",
        "old": "# 旧版\n\nrefund 与 policy 两列已删除，cafe 一词已改名。",
    }
    _fill(index, bodies)
    expected = {**{key: ["batch"] for key in ["itgc", "gen-itgc", "ITGC", "重跑", "后再"]}, "it": [], "caf": []}
    expected |= {"refund_policy": ["api"], "refund": ["old"], "café": ["cafe"], "cafe": ["old"]}
    got = {q: docs(index.search(q, alice, mode="lexical", lexical=lexical)) for q in expected}  # type: ignore[arg-type]
    assert got == expected


@pytest.mark.promise("LEX-2")
@pytest.mark.parametrize("lexical", ["isolated", "fts5"])
def test_words_of_every_script_are_found_and_quoted_as_stored(index: Index, alice: Context, lexical: str) -> None:
    """C003, C006."""
    bodies = {
        "card": "祝各位𠮷祥如意。",
        "net": "時々接続が切れる。",
        "kana": "サーバーを再起動する。",
        "hangul": "환불 규정은 별도 문서.",
        "wide": "# 年度\n\n２０２６年ＶＰＮ账号清单。",
        "cyr": "Возврат в течение двух недель.",
        "after": "退\u200b款需要订单号。",
        "login": "pass\u200dword 每季更换。",
    }
    _fill(index, bodies)
    expected = {"𠮷祥": "card", "時々": "net", "サーバー": "kana", "환불": "hangul", "2026": "wide", "vpn": "wide"}
    expected |= {"возврат": "cyr", "退款": "after", "退\u200b款": "after", "password": "login", "订\u200c单": "after"}
    for query, name in expected.items():
        hits = index.search(query, alice, mode="lexical", lexical=lexical)  # type: ignore[arg-type]
        assert docs(hits) == [name], query
        assert quotes(index.answer(hits, alice)) == [bodies[name]]


@pytest.mark.promise("CHK-1", "LEX-3", "OBS-2")
def test_one_enormous_token_does_no_harm(index: Index, alice: Context) -> None:
    """C005: a term is never longer than its chunk."""
    made = index.upsert("acme", "blob", 1, "markdown", "# 标识\n\n" + "a" * 91_000, ["alice"])
    index.upsert("acme", "refund", 1, "markdown", "# 退款\n\n退款在两周内办理。", ["alice"])
    assert made.chunks == 506
    got = [docs(index.search(q, alice, mode="lexical")) for q in ("退款", "标识", "a" * 1024)]
    assert got == [["refund"], ["blob"], []]
    own = index.search("a" * 220, alice, limit=100, mode="lexical", lexical="fts5")
    assert set(docs(own)) == {"blob"} and len(own) == 100
    assert index.check() == ()


@pytest.mark.promise("LEX-4", "LEX-5")
def test_bounds_of_a_query(index: Index, alice: Context) -> None:
    """C008: the surplus terms are named, and blank queries are no error."""
    _fill(index, {"refund": "# 退款\n\n退款政策两周有效。", "d63": "# 甲\n\nw63 备注", "d64": "# 乙\n\nw64 备注"})
    for query in ("", "x" * 1025, None, b"a", 7, ["a"]):
        assert code_of(index.search, query, alice) == "bounded_query_required"
    for query in ("   ", "\n\t", "？！…", '""', "*", "\0"):
        result = index.search(query, alice)
        trace = result.channel("lexical")
        assert len(result) == 0 and (trace.state, trace.reason, trace.terms_given) == ("skipped", "no_terms", 0)
    assert docs(index.search("退款\0政策", alice, mode="lexical")) == ["refund"]
    assert docs(index.search("x" * 1024, alice)) == []
    long = " ".join(f"w{n:02}" for n in range(70))
    for query, name in ((long, "d63"), ("w64 " + long, "d64")):
        for mode in MODES:
            for lexical in ("isolated", "fts5"):
                result = index.search(query, alice, mode=mode, lexical=lexical)  # type: ignore[arg-type]
                assert docs(result) == [name]
                assert {(t.terms_given, t.terms_used) for t in result.channels} == {(70, 64)}


@pytest.mark.promise("LEX-1", "LEX-2")
@given(st.text(alphabet=st.sampled_from("abzAZ09_ \n，。！？；：（）《》“”‘’…—、制度差旅龥\u9fff-./@～％é々")))
def test_the_fast_way_for_everyday_text_gives_the_same_terms(text: str) -> None:
    assert terms(text) == any_terms(text)
