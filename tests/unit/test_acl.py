"""Access: who may read is asked again at every answer, by compare and swap, and content never changes it."""

import itertools
import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from kbretrieval import Context, Hit, Index
from kbretrieval.results import ABSTENTION
from tests.unit.doubles import MODES, code_of, docs, error_of, quotes, rank

TRACE = ("eligible", "scored", "below_floor", "beyond_window", "returned", "state", "reason")


@pytest.mark.promise("UPD-3", "ACL-3")
def test_content_never_changes_the_acl_of_a_live_document(
    index: Index, alice: Context, bob: Context, carol: Context
) -> None:
    """C043"""
    index.upsert("acme", "pay", 1, "markdown", "# 薪酬\n\n薪酬表第一版", ["alice", "bob"])
    assert index.set_acl("acme", "pay", ["bob"], 1).acl_revision == 2
    index.upsert("acme", "pay", 2, "markdown", "# 薪酬\n\n薪酬表第二版", ["*"])
    index.upsert("acme", "pay", 2, "markdown", "# 薪酬\n\n薪酬表第二版", ["alice"])
    index.upsert("acme", "pay", 3, "markdown", "# 薪酬\n\n薪酬表第三版", ["*"], restore=True)
    assert [docs(index.search("薪酬表", who)) for who in (alice, bob, carol)] == [[], ["pay"], []]
    assert index.status("acme", "pay").acl == ("bob",)
    assert index.set_acl("acme", "pay", ["alice"], 2).acl_revision == 3


@pytest.mark.promise("ACL-4", "CIT-1")
def test_a_revoked_right_ends_kept_and_cached_hits_at_once(index: Index, alice: Context, bob: Context) -> None:
    """C044: no upsert, restart or wait; bob keeps his access through a new search, his old hit is dead like hers."""
    index.upsert("acme", "plan", 1, "markdown", "# 选址\n\n新址定在河东。", ["alice", "bob"])
    hers, his = index.search("新址", alice), index.search("新址", bob)
    cached = [Hit.from_dict(json.loads(json.dumps(hit.to_dict()))) for hit in hers]
    assert index.answer(hers, alice).state == "extractive"
    index.set_acl("acme", "plan", ["bob"], 1)
    for hits in (hers, cached):
        assert (index.answer(hits, alice).state, index.answer(hits, alice).answer) == ("abstain", ABSTENTION)
    assert {mode: docs(index.search("新址", alice, mode=mode)) for mode in MODES} == {mode: [] for mode in MODES}  # type: ignore[arg-type]
    assert quotes(index.answer(index.search("新址", bob), bob)) == ["# 选址\n\n新址定在河东。"]
    assert index.answer(his, bob).state == "abstain"


@pytest.mark.promise("ACL-2", "ACL-3", "CIT-6")
def test_each_policy_event_replaces_the_whole_list(index: Index, alice: Context, bob: Context) -> None:
    """C045"""
    carol = Context("acme", "carol", groups=("hr",))
    index.upsert("acme", "memo", 1, "markdown", "# 备忘\n\n备忘内容", ["*"])
    index.upsert("acme", "hr", 1, "markdown", "# 人事\n\n人事内容", ["group:hr", "carol"])
    assert [sorted(docs(index.search("内容", who))) for who in (alice, carol)] == [["memo"], ["hr", "memo"]]
    index.set_acl("acme", "memo", ["bob"], 1)
    index.set_acl("acme", "hr", ["group:hr"], 1)
    assert index.answer(index.search("人事", carol), carol).evidence[0].granted_by == "group:hr"
    index.set_acl("acme", "hr", ["bob", "group:finance"], 2)
    assert [sorted(docs(index.search("内容", who))) for who in (alice, bob, carol)] == [[], ["hr", "memo"], []]


BAD_LISTS: list[Any] = [
    *(None, "alice", ("alice",), {"alice"}, {"alice": 1}, ["alice", None], ["alice", 5], [b"alice"]),
    *(["alice", ""], [" alice"], ["al\u200bice"], ["a" * 201], [["alice"]], ["group:a:b"], ["group:"], ["e\u0301"]),
]


@pytest.mark.promise("ACL-2")
@pytest.mark.parametrize("bad", BAD_LISTS, ids=lambda value: ascii(value)[:30])
def test_what_is_no_explicit_list_changes_nothing(index: Index, alice: Context, bob: Context, bad: Any) -> None:
    """C046"""
    index.upsert("acme", "doc", 1, "markdown", "# 章程\n\n章程内容", ["alice"])
    assert code_of(index.set_acl, "acme", "doc", bad, 1) == "explicit_acl_list_required"
    assert code_of(index.upsert, "acme", "doc2", 1, "markdown", "# 章程", bad) == "explicit_acl_list_required"
    assert [docs(index.search("章程", who)) for who in (alice, bob)] == [["doc"], []]
    assert index.set_acl("acme", "doc", ["alice", "bob"], 1).acl_revision == 2
    assert index.status("acme", "doc2").state == "absent"


@pytest.mark.promise("ACL-2")
def test_there_is_no_negative_entry(index: Index, alice: Context) -> None:
    index.upsert("acme", "doc", 1, "markdown", "# 章程\n\n章程内容", ["*", "!alice", "-alice"])
    assert docs(index.search("章程", alice)) == ["doc"]
    assert docs(index.search("章程", Context("beta", "alice"))) == []


@pytest.mark.promise("ACL-3", "ACL-7", "ID-3")
def test_grant_and_revoke_in_turn(index: Index, alice: Context, carol: Context) -> None:
    """C047 in one process: granting again never revives a hit of an earlier grant."""
    index._engine.connection.run("PRAGMA synchronous=OFF")
    index.upsert("acme", "switch", 1, "markdown", "# 开关\n\n开关状态说明", ["alice"])
    first = index.search("开关状态", alice)
    for n in range(1, 301):
        hits = index.search("开关状态", alice, limit=1)
        assert index.answer(hits, alice).state == ("extractive" if n % 2 else "abstain")
        index.set_acl("acme", "switch", ["bob"] if n % 2 else ["alice"], n)
        assert index.answer(hits, alice).state == "abstain"
    assert index.answer(first, alice).state == "abstain"
    assert index.answer(index.search("开关状态", alice), alice).state == "extractive"
    wrong: list[Any] = [1, 300, 302, 0, True, None]
    codes = [code_of(index.set_acl, "acme", "switch", ["*"], expected) for expected in wrong]
    assert codes == ["stale_acl_revision"] * 3 + ["positive_acl_revision_required"] * 3
    assert "ACL revision 1 given, 301 stored" in str(error_of(index.set_acl, "acme", "switch", ["*"], 1))
    assert docs(index.search("开关状态", carol)) == []


@pytest.mark.promise("ACL-4", "CIT-1", "CIT-5")
def test_one_callers_hits_are_no_use_to_another(index: Index, alice: Context, bob: Context) -> None:
    """C048"""
    index.upsert("acme", "pub", 1, "markdown", "# 差旅\n\n差旅每晚五百元。", ["*"])
    index.upsert("acme", "exec", 1, "markdown", "# 差旅\n\n高管差旅每晚两千元。", ["bob"])

    def told(who: Context) -> list[str]:
        found = index.answer(index.search("差旅每晚多少", who), who, limit=10)
        return sorted(item.doc_id for item in found.evidence)

    assert (told(bob), told(alice)) == (["exec", "pub"], ["pub"])
    assert index.answer(index.search("差旅每晚多少", bob), alice, limit=10).state == "abstain"
    index.set_acl("acme", "exec", ["*"], 1)
    assert told(alice) == ["exec", "pub"]


@pytest.mark.promise("ACL-1", "ACL-6", "ERR-1")
def test_no_method_gives_text_without_a_context(index: Index, alice: Context, bob: Context) -> None:
    """C016: look-alikes are no contexts; each such refusal is also a `PermissionError` and says nothing of the text."""
    index.upsert("acme", "plan", 1, "markdown", "# 并购计划\n\n代号猎户座。", ["bob"])
    hits = index.search("猎户座", bob)

    class Posing(Context):
        pass

    fakes: list[Any] = [None, {"tenant": "acme", "principal": "bob"}, ("acme", "bob"), "bob", object(), Context]
    fakes.append(Posing("acme", "bob"))
    for fake, (call, argument) in itertools.product(
        fakes, ((index.search, "猎户座"), (index.answer, hits), (index.audit, hits))
    ):
        refused = error_of(call, argument, fake)
        assert refused is not None
        assert refused.code == "trusted_context_required"
        assert isinstance(refused, PermissionError)
        assert "猎户座" not in str(refused)
    answer = index.answer(hits, alice)
    assert (answer.state, answer.evidence) == ("abstain", ())


@pytest.mark.promise("ACL-6")
def test_what_works_without_a_context_says_so_in_its_first_line() -> None:
    """Every public method either takes a context, or writes, or is named as maintenance."""
    writes = {"open", "close", "upsert", "set_acl", "delete"}
    for name, attribute in vars(Index).items():
        method = getattr(attribute, "__func__", attribute)
        if name.startswith("_") or not callable(method) or name in writes:
            continue
        if "context" not in method.__annotations__ or name == "audit":
            assert "aintenance" in (method.__doc__ or "").splitlines()[0], name


@pytest.mark.promise("ID-1", "ACL-5", "LEX-6", "VEC-7")
def test_tenant_and_acl_hold_in_both_channels_and_after_reopening(index_path: Path, alice: Context) -> None:
    """C013"""
    text = "# 差旅标准\n\n住宿每晚限额500元。"
    with Index.open(index_path) as index:
        index.upsert("acme", "travel", 1, "markdown", text, ["alice"])
        index.upsert("acme", "board", 1, "markdown", text, ["bob"])
        index.upsert("beta", "travel", 1, "markdown", text, ["alice"])
    with Index.open(index_path) as index:
        for tenant, lexical in itertools.product(("acme", "beta"), ("isolated", "fts5")):
            for mode in MODES:
                found = index.search("住宿限额", Context(tenant, "alice"), limit=100, mode=mode, lexical=lexical)  # type: ignore[arg-type]
                assert [(hit.tenant, hit.doc_id) for hit in found] == [(tenant, "travel")]
                assert {trace.eligible for trace in found.channels} == {1}
        (theirs,) = index.search("住宿限额", Context("beta", "alice"))
        assert index.answer([theirs], alice).state == "abstain"


@pytest.mark.promise("ACL-5", "VEC-7", "LEX-6", "RRF-3")
def test_nobodys_window_is_filled_by_rows_they_may_not_see(index: Index, alice: Context) -> None:
    """C012"""
    index._engine.connection.run("PRAGMA synchronous=OFF")
    for i in range(120):
        index.upsert("beta" if i % 2 else "acme", f"b{i:03d}", 1, "markdown", "# 年假\n\n年假 年假 年假", ["bob"])
    for i in range(5):
        index.upsert("acme", f"a{i}", 1, "markdown", f"# 休假\n\n年假第{i}条：提前三天申请。", ["alice"])
    for mode, lexical in itertools.product(MODES, ("isolated", "fts5")):
        found = index.search("年假", alice, limit=100, mode=mode, lexical=lexical, window=5)  # type: ignore[arg-type]
        assert sorted(docs(found)) == ["a0", "a1", "a2", "a3", "a4"]
        for trace in found.channels:
            assert trace.state != "run" or (trace.eligible, trace.beyond_window) == (5, 0)
        for limit in (1, 3, 5):
            assert len(index.search("年假", alice, limit=limit, mode=mode, lexical=lexical)) == limit  # type: ignore[arg-type]


@pytest.mark.promise("ACL-2", "ACL-5", "LEX-8", "RRF-2")
def test_permissions_change_neither_the_shape_nor_the_scores_of_what_may_be_seen(
    index: Index, tmp_path: Path, alice: Context, bob: Context
) -> None:
    """C014, C017: bit-equal to an index that holds the caller's documents alone, every counter included."""
    mine = [("pub", "# 食堂\n\n午餐十一点半开始。", ["*"]), ("mine", "# 午餐补贴\n\n午餐补贴每日20元。", ["alice"])]
    hidden = [
        ("hr", "# 午餐核算\n\n午餐核算归人事。", ["group:hr"]),
        ("board", "# 午餐会\n\n董事午餐会纪要。", ["bob"]),
    ]
    with Index.open(tmp_path / "alone.sqlite") as alone:
        for doc_id, text, acl in mine:
            alone.upsert("acme", doc_id, 1, "markdown", text, acl)
        wanted = alone.search("午餐", alice, limit=10)
    for doc_id, text, acl in (hidden[0], *mine, hidden[1]):
        index.upsert("acme", doc_id, 1, "markdown", text, acl)
    found = index.search("午餐", alice, limit=10)
    assert docs(found) == docs(wanted) == ["mine", "pub"]
    for one, other in zip(found, wanted, strict=True):
        assert [(rank(one, c), one.channel(c)) for c in ("lexical", "vector")] == [
            (rank(other, c), other.channel(c)) for c in ("lexical", "vector")
        ]
        assert one.fused == other.fused
    assert [[getattr(t, n) for n in TRACE] for t in found.channels] == [
        [getattr(t, n) for n in TRACE] for t in wanted.channels
    ]
    carol = Context("acme", "carol", groups=("hr",))
    assert sorted(docs(index.search("午餐", bob))) == ["board", "pub"]
    assert sorted(docs(index.search("午餐", carol))) == ["hr", "pub"]
    assert {tuple(hit.to_dict()) for hit in index.search("午餐", carol)} == {
        ("schema", *(item.name for item in fields(Hit)))
    }


@pytest.mark.promise("ACL-1", "ACL-2", "ID-2")
def test_an_empty_scope_is_nobody_and_not_everybody(index: Index, carol: Context) -> None:
    """C015"""
    index.upsert("acme", "salary", 1, "markdown", "# 薪酬\n\n薪酬区间保密。", ["group:hr"])
    index.upsert("acme", "nobody", 1, "markdown", "# 薪酬草稿\n\n薪酬草稿未发布。", [])
    index.upsert("acme", "open", 1, "markdown", "# 作息\n\n九点上班。", ["*"])
    callers = (carol, Context("acme", "carol", groups=("hr",)), Context("gamma", "carol"), Context("beta", "alice"))
    found = [sorted(docs(index.search("薪酬 上班", who, limit=100))) for who in callers]
    assert found == [["open"], ["open", "salary"], [], []]
    for name in ("*", "group:hr", "group:"):
        assert code_of(Context, "acme", name) == "invalid_identity"
