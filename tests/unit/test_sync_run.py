"""Runs from beginning to end: what is written, what is left alone, what is refused (SYN-1…SYN-8, POL-2)."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from kbretrieval import Context, Index, Provenance
from kbretrieval.errors import DeletionsNeedConfirmation, SourceListingIncomplete, SourceUnreadable, StorageIOError
from kbretrieval.index import Index as PlainIndex
from kbretrieval.results import DocumentStatus
from kbretrieval.sync import Encodings, FolderSource, Item, Listing, Policy, synchronise
from kbretrieval.sync.examining import Examined
from kbretrieval.sync.plan import Survey, Wishes, make_plan
from tests.unit.doubles import Table, code_of, error_of
from tests.unit.sync_place import EVERYONE, TENANT, Shelf, World, codes, kinds, policy

GONE = SourceUnreadable("a readable file is required (errno 5)")


@pytest.fixture
def world(index: Index, index_path: Path) -> World:
    return World(index_path, index)


def many(count: int) -> dict[str, Any]:
    return {f"d{number:02}.md": f"# 文档 {number}" for number in range(count)}


@pytest.mark.promise("SYN-3")
def test_what_changed_is_written_and_nothing_else(world: World) -> None:
    first = world.run({"a.md": "# 甲\n\n退款", "b.txt": "乙\n退款", "c.json": '{"title": "丙", "sections": []}'})
    assert kinds(first, "done") == [("create", "a.md"), ("create", "b.txt"), ("create", "c.json")]
    assert (first.chunks, first.unchanged) == (3, 0)
    changed = {"a.md": "# 甲\n\n退款", "b.txt": "乙二\n退款", "c.json": '{"title": "丁", "sections": []}'}
    second = world.run(changed)
    assert kinds(second, "done") == [("update", "b.txt"), ("update", "c.json")]
    assert world.orders() == {name: ("live", 1 if name == "a.md" else 2, 1) for name in changed}
    assert world.documents()["b.txt"].title == "乙二"


@pytest.mark.promise("SYN-3")
def test_a_new_title_alone_is_a_change(world: World) -> None:
    world.run({"a.md": "# 甲"})
    status = world.documents()["a.md"]
    same = Examined(
        Item("a.md", "a.md", "a.md", "markdown"), "a.md", False, "0", status.title or "", status.sha256 or ""
    )
    for title, steps in ((same.title, []), ("乙", [("update", 2)])):
        survey = Survey("folder", (replace(same, title=title),), (), (), True)
        plan = make_plan(survey, [status], EVERYONE, Wishes())
        assert [(step.kind, step.revision) for step in plan.steps] == steps


@pytest.mark.promise("SYN-3", "POL-2")
def test_a_second_run_changes_no_byte_and_encodes_nothing(tmp_path: Path) -> None:
    encoder = Table("table-2")
    files: dict[str, Any] = {"a.md": "# 甲\r\n\r\n退款", "b.md": "\ufeff---\nid: 乙\n---\n# 乙"}
    files["c.txt"] = "丙".encode("utf-16")
    with Index.open(tmp_path / "kb.sqlite", encoder=encoder) as index:
        world = World(tmp_path / "kb.sqlite", index)
        world.run(files, policy(("alice",)))
        before = world.dump()
        encoder.before = lambda: pytest.fail("something was encoded")
        again = world.run(files, policy(("alice",)))
        assert (again.steps, again.unchanged, again.chunks) == ((), 3, 0)
        # Another form of the same projection is no change either.
        world.run({**files, "a.md": "# 甲\n\n退款", "c.txt": "丙"}, policy(("alice",)))
        assert world.dump() == before
        report = world.run(files, policy(("bob",), c=()))
        taken, given = ("a.md", "c.txt", "乙"), ("a.md", "乙")
        expected = [*(("tighten", name) for name in taken), *(("loosen", name) for name in given)]
        assert kinds(report, "done") == expected
        assert report.chunks == 0
        assert {item.revision for item in world.documents().values()} == {1}


@pytest.mark.promise("SYN-3")
def test_an_unchanged_file_is_read_once_and_projected_never(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Shelf(dict(many(3)))
    world.run(source)
    assert [source.reads.count(path) for path in source.files] == [2, 2, 2]
    source.reads.clear()
    monkeypatch.setattr("kbretrieval.sync.examining.project", lambda *_: pytest.fail("projected"))
    world.run(source)
    assert source.reads == list(source.files)


@pytest.mark.promise("POL-2")
def test_a_content_change_alone_leaves_the_policy_alone(world: World) -> None:
    world.run({"a.md": "# 旧"}, policy(("alice", "bob")))
    report = world.run({"a.md": "# 新"}, policy(("alice", "bob")))
    assert kinds(report) == [("update", "a.md")]
    assert world.orders() == {"a.md": ("live", 2, 1)}
    assert world.documents()["a.md"].acl == ("alice", "bob")


@pytest.mark.promise("SYN-1")
def test_a_document_with_an_id_survives_a_rename_and_one_without_does_not(world: World) -> None:
    named = "---\nid: 差旅\n---\n# 差旅"
    world.run({"old/a.md": named, "old/b.md": "# 乙", "c.md": "# 丙"})
    report = world.run({"new/a.md": named, "old/b.md": "# 乙", "c.md": "# 丙"})
    assert kinds(report) == [("update", "差旅")]
    before = world.dump()
    assert (world.run({"new/a.md": named, "old/b.md": "# 乙", "c.md": "# 丙"}).steps, world.dump()) == ((), before)
    report = world.run({"new/a.md": named, "new/b.md": "# 乙", "c.md": "# 丙"})
    assert kinds(report) == [("delete", "old/b.md"), ("create", "new/b.md")]


@pytest.mark.promise("SYN-1", "SYN-3", "ID-6", "POL-2")
def test_a_quotation_leads_to_where_a_renamed_file_is_now(tmp_path: Path) -> None:
    """A rename is a new revision of the same text: nothing is encoded, and no right changes."""
    encoder, alice = Table("table-2"), Context(TENANT, "alice")
    one, two = "---\nid: 差旅\n---\n# 住宿", "---\nid: 请假\n---\n# 年假"
    with Index.open(tmp_path / "kb.sqlite", encoder=encoder) as index:
        world = World(tmp_path / "kb.sqlite", index)

        def places() -> dict[str, str]:
            found = index.answer(index.search("x", alice, mode="vector"), alice).evidence
            return {item.doc_id: str(item.provenance.uri) for item in found if item.provenance is not None}

        world.run({"old/a.md": one, "b.md": two})
        assert places() == {"差旅": "old/a.md#差旅", "请假": "b.md#请假"}
        encoder.before = lambda: pytest.fail("something was encoded")
        planned = world.run({"b.md": one, "a.md": two}, dry_run=True)
        report = world.run({"b.md": one, "a.md": two})
        encoder.before = None
        for made in (planned, report):
            steps = [(step.kind, step.doc_id, step.path, step.acl) for step in made.steps]
            assert steps == [("update", "差旅", "b.md", None), ("update", "请假", "a.md", None)]
        assert places() == {"差旅": "b.md#差旅", "请假": "a.md#请假"}
        assert world.orders() == {"差旅": ("live", 2, 1), "请假": ("live", 2, 1)}


@pytest.mark.promise("SYN-1")
def test_two_files_with_one_identity_are_both_refused_and_named(world: World) -> None:
    world.run({"a.md": "---\nid: x\n---\n旧文", "z.md": "# 乙"})
    report = world.run({"b/a.md": "---\nid: x\n---\n一", "a.md": "---\nid: x\n---\n二", "z.md": "# 丙"})
    assert codes(report) == {"a.md": "duplicate_identity", "b/a.md": "duplicate_identity"}
    assert [refusal.facts.split(", ")[1] for refusal in report.refused] == ["b/a.md is another", "a.md is another"]
    assert kinds(report) == [("update", "z.md")]
    assert world.found("旧文") == {"x"}
    report = world.run({"x.md": "一", "a.md": "---\nid: x.md\n---\n二", "z.md": "# 丙"})
    assert codes(report) == {"a.md": "duplicate_identity", "x.md": "duplicate_identity"}


@pytest.mark.promise("SYN-1")
@pytest.mark.parametrize(
    ("path", "text"), [("a\u202e.md", "x"), ("b.md", "---\nid: ' '\n---\n"), ("c.md", "---\nid: '*'\n---\n")]
)
def test_an_identity_that_is_none_is_refused(world: World, path: str, text: str) -> None:
    report = world.run({path: text, "good.md": "# 甲"})
    assert list(codes(report).values()) == ["invalid_identity"]
    assert kinds(report) == [("create", "good.md")]


@pytest.mark.promise("SYN-1")
def test_blanks_and_long_paths_are_valid(world: World) -> None:
    paths = {"制度 2025/差旅 报销.md": "# 甲", "x" * 1021 + ".md": "# 乙", "x" * 1022 + ".md": "# 丙"}
    report = world.run(paths)
    assert list(codes(report).values()) == ["invalid_identity"]
    assert [len(step.doc_id) for step in report.steps] == [1024, 16]


@pytest.mark.promise("SYN-4")
def test_what_the_listing_lacks_is_deleted(world: World) -> None:
    world.run({"a.md": "# 甲", "b.md": "# 乙 退款"})
    report = world.run({"a.md": "# 甲"})
    assert kinds(report, "done") == [("delete", "b.md")]
    assert (report.steps[0].losses, world.orders()["b.md"]) == (("*",), ("deleted", 2, 2))
    assert world.found("退款") == set()


@pytest.mark.promise("SYN-4")
def test_a_missing_or_empty_source_deletes_nothing(world: World, tmp_path: Path) -> None:
    world.run({"a.md": "# 甲"})
    before = world.dump()
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / ".hidden.md").write_text("x", encoding="utf-8")
    for source in (Shelf({}), FolderSource(tmp_path / "absent"), FolderSource(tmp_path / "empty")):
        for options in ({}, {"confirm_deletions": 99}, {"dry_run": True}):
            assert code_of(world.run, source, **options) == "source_listing_incomplete"
    assert world.dump() == before


@pytest.mark.promise("SYN-4", "ERR-2")
@pytest.mark.parametrize("root", ["", None, 7, []])
def test_a_root_without_a_name_is_not_the_working_directory(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Any
) -> None:
    """What a script asks for that lost its variable: every document would be deleted, and others take their place."""
    world.run({"a.md": "# 甲"})
    (tmp_path / "other.md").write_text("# 乙", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    before = world.dump()
    assert code_of(world.run, FolderSource(root)) == "source_listing_incomplete"
    assert world.dump() == before


@pytest.mark.promise("SYN-4")
def test_an_incomplete_listing_writes_and_deletes_nothing(world: World) -> None:
    world.run(many(4))
    report = world.run(Shelf({"d00.md": "# 新"}, unlisted=("制度",)))
    assert kinds(report, "done") == [("update", "d00.md")]
    assert codes(report) == {"制度": "source_listing_incomplete"}
    assert {item.doc_id: item.code for item in report.kept} == dict.fromkeys(
        ("d01.md", "d02.md", "d03.md"), "source_listing_incomplete"
    )
    assert kinds(world.run({"d00.md": "# 新"})) == [("delete", f"d0{number}.md") for number in (1, 2, 3)]


class Moving(Shelf):
    """A source whose second listing is another: a file was moved while the first was made."""

    def list(self) -> Listing:
        found = super().list()
        self.files |= {"moved.md": "# 乙"}
        return found


class Vanishing(Shelf):
    """A source that is gone when it is listed again."""

    def list(self) -> Listing:
        if self.reads:
            raise SourceListingIncomplete("gone")
        return super().list()


@pytest.mark.promise("SYN-4")
@pytest.mark.parametrize("kind", [Moving, Vanishing])
def test_a_source_that_changes_while_it_is_listed_deletes_nothing(world: World, kind: type[Shelf]) -> None:
    world.run({"a.md": "# 甲", "b.md": "# 乙"})
    report = world.run(kind({"a.md": "# 新"}))
    assert kinds(report) == [("update", "a.md")]
    assert [(item.doc_id, item.code) for item in report.kept] == [("b.md", "source_listing_incomplete")]
    assert codes(report) == {".": "source_listing_incomplete"}
    assert world.orders()["b.md"] == ("live", 1, 1)


@pytest.mark.promise("SYN-4")
@pytest.mark.parametrize(
    ("live", "gone", "confirmed", "stops"),
    [
        *((4, 4, 0, False), (5, 5, 0, True), (25, 5, 0, False), (24, 5, 0, True), (24, 4, 0, False)),
        *((26, 6, 5, True), (26, 6, 6, False), (1000, 200, 0, False), (1000, 201, 0, True), (1000, 201, 500, False)),
    ],
)
def test_more_than_a_fifth_and_five_or_more_need_a_word(live: int, gone: int, confirmed: int, stops: bool) -> None:
    origin = Provenance(uri="x", connector="folder")
    blank = DocumentStatus("live", TENANT, "", 1, 1, ("*",), "甲", "text", 1, "0", "0", 1, 1, "", origin)
    stored = [replace(blank, doc_id=f"d{number}") for number in range(live)]
    others = [replace(blank, doc_id=f"o{number}", provenance=None) for number in range(99)]
    files = (Examined(Item(name, name, name, "text"), name, False, "0", "甲", "0") for name in map(str, range(99)))
    left = (
        Examined(Item(d.doc_id, d.doc_id, d.doc_id, "text"), d.doc_id, False, "0", "甲", "0") for d in stored[gone:]
    )
    survey = Survey("folder", (*left, *files), (), (), True)
    plan = make_plan(survey, [*stored, *others], EVERYONE, Wishes(confirm_deletions=confirmed))
    assert (plan.stop is not None) is stops
    assert sum(step.kind == "delete" for step in plan.steps) == gone
    if plan.stop is not None:
        assert plan.stop.startswith(f"{gone} of {live} ") and plan.stop.endswith(f"--confirm-deletions {gone}")


@pytest.mark.promise("SYN-4", "SYN-8")
def test_a_run_that_would_delete_too_much_stops_before_it(world: World) -> None:
    world.run(many(6))
    before = world.dump()
    left = Shelf({"d05.md": "# 文档 5", "new.md": "# 新"})
    with pytest.raises(DeletionsNeedConfirmation, match=r"5 of 6 .*--confirm-deletions 5$"):
        world.run(left, confirm_deletions=4)
    assert world.dump() == before
    foreseen = world.run(left, dry_run=True)
    assert {step.state for step in foreseen.steps} == {"stopped"} and len(foreseen.steps) == 6
    refusal = foreseen.refusal()
    assert refusal is not None and (refusal.code, refusal.exit_status) == ("deletions_need_confirmation", 4)
    assert len(kinds(world.run(left, confirm_deletions=5), "done")) == 6


@pytest.mark.promise("SYN-4", "POL-3")
def test_rights_are_taken_away_even_where_the_run_stops(world: World) -> None:
    world.run(many(6), policy(("alice", "bob")))
    with pytest.raises(DeletionsNeedConfirmation):
        world.run(many(1), policy(("alice",)))
    assert {item.acl for item in world.documents().values()} == {("alice",)}
    assert {item.state for item in world.documents().values()} == {"live"}


@pytest.mark.promise("SYN-4")
def test_documents_of_other_sources_are_left_alone(world: World) -> None:
    with world.open() as index:
        index.upsert(TENANT, "by hand", 1, "text", "手写", ["bob"])
        index.upsert(TENANT, "a.md", 1, "markdown", "# 甲", ["bob"], provenance=Provenance(connector="mail"))
        index.upsert("other", "x.md", 1, "text", "别家", ["bob"])
    report = world.run({"a.md": "# 乙", "b.md": "# 丙"})
    assert codes(report) == {"a.md": "document_of_another_source"}
    assert (kinds(report), report.others, report.kept) == ([("create", "b.md")], 2, ())
    assert kinds(world.run(Shelf({"c.md": "# 丁"}, connector="wiki"))) == [("create", "c.md")]
    assert {item.state for item in world.documents().values()} == {"live"}


@pytest.mark.promise("SYN-4")
def test_a_document_of_no_source_is_taken_over_by_its_file(world: World) -> None:
    with world.open() as index:
        index.upsert(TENANT, "a.md", 3, "markdown", "# 甲", ["bob"])
    assert kinds(world.run({"a.md": "# 甲", "b.md": "# 乙"})) == [
        ("update", "a.md"),
        ("create", "b.md"),
        ("loosen", "a.md"),
    ]
    status = world.documents()["a.md"]
    assert (status.revision, status.acl) == (4, ("*",))
    assert status.provenance is not None and status.provenance.connector == "folder"
    assert kinds(world.run({"b.md": "# 乙"})) == [("delete", "a.md")]


BAD: dict[str, tuple[Any, str]] = {
    "unreadable.md": (GONE, "source_unreadable"),
    "encoding.md": ("旧版".encode("gb18030"), "unsupported_encoding"),
    "nul.md": ("a\0", "invalid_text"),
    "syntax.json": ("{", "invalid_json"),
    "shape.json": ("[]", "unsupported_json_shape"),
    "matter.md": ("---\nid: 'x\n---\n", "invalid_front_matter"),
}


@pytest.mark.promise("SYN-5")
def test_a_bad_file_keeps_its_old_text_and_holds_up_no_other(world: World) -> None:
    old = '{"title": "旧版退款", "sections": []}'
    world.run({name: old if name.endswith("json") else "旧版退款" for name in [*BAD, "good.md"]})
    assert world.found("旧版退款") == {*BAD, "good.md"}
    before = world.orders()
    report = world.run({name: bad for name, (bad, _) in BAD.items()} | {"good.md": "# 新版", "new.md": "# 新版"})
    assert codes(report) == {name: code for name, (_, code) in BAD.items()}
    assert kinds(report, "done") == [("update", "good.md"), ("create", "new.md")]
    assert world.found("旧版退款") == set(BAD)
    assert {name: order for name, order in world.orders().items() if name in BAD} == {
        name: order for name, order in before.items() if name in BAD
    }
    refusal = report.refusal()
    assert refusal is not None and (refusal.code, refusal.exit_status) == ("some_items_refused", 3)


@pytest.mark.promise("SYN-4", "SYN-5")
def test_a_file_that_may_name_a_document_keeps_every_document_that_was_named(world: World) -> None:
    world.run({"a.md": "---\nid: x\n---\n# 甲", "b.md": "# 乙", "c.md": "# 丙", "d.txt": "丁"})
    report = world.run({"moved.md": GONE, "c.md": "# 丙", "d.txt": GONE})
    assert kinds(report) == [("delete", "b.md")]
    assert [(item.doc_id, item.path, item.code) for item in report.kept] == [("x", "a.md", "source_unreadable")]
    report = world.run({"moved.txt": GONE, "c.md": "# 丙", "d.txt": "丁"})
    assert kinds(report) == [("delete", "x")]


class Failing(Table):
    """An encoder that cannot encode one word."""

    def __init__(self) -> None:
        super().__init__("table-2")
        self.fail_on = "难"


@pytest.mark.promise("SYN-5")
def test_a_text_that_cannot_be_encoded_is_one_file_s_fault(tmp_path: Path) -> None:
    with Index.open(tmp_path / "kb.sqlite", encoder=Failing()) as index:
        report = World(tmp_path / "kb.sqlite", index).run({"a.md": "# 难", "b.md": "# 易"})
    assert codes(report) == {"a.md": "encoder_failed"}
    assert [(step.doc_id, step.state, step.code) for step in report.steps] == [
        ("a.md", "refused", "encoder_failed"),
        ("b.md", "done", None),
    ]


@pytest.mark.promise("SYN-5")
def test_what_ends_every_step_alike_ends_the_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise StorageIOError("the disk said no")

    monkeypatch.setattr(PlainIndex, "upsert", full)
    with pytest.raises(StorageIOError):
        world.run(many(2))


@pytest.mark.promise("SYN-6")
def test_a_file_that_comes_back_needs_a_word(world: World) -> None:
    named = "---\nid: x\n---\n# 丙"
    files = {"a.md": "# 甲", "b.md": "# 乙", "c.md": named, "z.md": "# 丁"}
    world.run(files, policy(("alice",)))
    world.run({"z.md": "# 丁"}, policy(("alice",)))
    before = world.dump()
    report = world.run(files, policy(("bob",), z=("alice",)))
    assert codes(report) == dict.fromkeys(("a.md", "b.md", "c.md"), "deleted_document_requires_explicit_restore")
    assert world.dump() == before
    report = world.run(files, policy(("bob",), z=("alice",)), restore=["a.md", "c.md"])
    assert kinds(report, "done") == [("restore", "a.md"), ("restore", "x")]
    assert codes(report) == {"b.md": "deleted_document_requires_explicit_restore"}
    assert (world.orders()["a.md"], world.documents()["a.md"].acl) == (("live", 3, 3), ("bob",))
    report = world.run(files, policy(("bob",), z=("alice",)), restore=["a.md"], restore_all=True)
    assert kinds(report, "done") == [("restore", "b.md")]
    assert world.run(files, policy(("bob",), z=("alice",)), restore_all=True).steps == ()


@pytest.mark.promise("SYN-6")
def test_a_path_that_names_no_file_is_a_slip(world: World) -> None:
    for names in (["b.md"], "a.md", [7]):
        assert code_of(world.run, {"a.md": "# 甲"}, restore=names) == "invalid_parameter"
    assert code_of(world.run, {"a.md": GONE}, restore=["a.md"]) is None


@pytest.mark.promise("SYN-8", "POL-4")
def test_a_dry_run_is_the_run_without_its_writes(world: World) -> None:
    world.run({"a.md": "# 甲", "b.md": "# 乙", "c.md": "# 丙", "e.md": "# 戊"}, policy(("alice", "bob")))
    files = {"a.md": "# 新", "b.md": "# 乙", "d.md": "# 丁", "e.md": GONE}
    rules = policy(("alice",), b=("bob", "group:x"), d=("*",))
    before, sizes = world.dump(), sorted(path.name for path in world.path.parent.iterdir())
    foreseen = world.run(files, rules, dry_run=True)
    assert (world.dump(), sorted(path.name for path in world.path.parent.iterdir())) == (before, sizes)
    done = world.run(files, rules)
    plain = [(step.kind, step.doc_id, step.path, step.revision, step.acl_revision, step.acl) for step in done.steps]
    assert plain == [(s.kind, s.doc_id, s.path, s.revision, s.acl_revision, s.acl) for s in foreseen.steps]
    assert [(step.kind, step.doc_id, step.gains, step.losses) for step in foreseen.steps] == [
        ("tighten", "a.md", (), ("bob",)),
        ("tighten", "b.md", (), ("alice",)),
        ("tighten", "e.md", (), ("bob",)),
        ("delete", "c.md", (), ("alice", "bob")),
        ("update", "a.md", (), ()),
        ("create", "d.md", ("*",), ()),
        ("loosen", "b.md", ("group:x",), ()),
    ]
    assert {step.state for step in foreseen.steps} == {"planned"} and {step.state for step in done.steps} == {"done"}
    assert foreseen.refused == done.refused and foreseen.dry_run and not done.dry_run
    for step in done.steps:
        status = world.documents()[step.doc_id]
        assert status.revision == step.revision or step.kind == "tighten"


@pytest.mark.promise("SYN-8")
def test_a_dry_run_needs_no_index_and_a_run_does() -> None:
    source = Shelf({"a.md": "# 甲"})
    report = synchronise(None, source, EVERYONE, tenant=TENANT, dry_run=True)
    assert kinds(report, "planned") == [("create", "a.md")]
    assert code_of(synchronise, None, source, EVERYONE, tenant=TENANT) == "invalid_parameter"


@pytest.mark.promise("SYN-2")
def test_files_are_decoded_as_they_were_examined(world: World) -> None:
    files: dict[str, Any] = {
        "a.md": "旧制".encode("gbk"),
        "b/c.txt": "舊制".encode("big5"),
        "d.md": "旧制".encode("utf-16"),
    }
    assert set(codes(world.run(files))) == {"a.md", "b/c.txt"}
    assert codes(world.run(files, encodings=Encodings.parse(["gbk", "b/**=big5"]))) == {}
    assert world.found("旧制") | world.found("舊制") == set(files)


def test_a_quotation_leads_back_to_the_file(world: World) -> None:
    raw = "\ufeff---\nid: 差旅\n---\n住宿限额".encode()
    world.run({"制度/a.md": raw, "b.md": "住宿限额"})
    alice = Context(TENANT, "alice")
    with world.open() as index:
        evidence = index.answer(index.search("住宿限额", alice), alice, limit=2).evidence
    found = {item.doc_id: item.provenance for item in evidence}
    assert found["差旅"] == Provenance(
        uri="制度/a.md#差旅",
        connector="folder",
        version=f"sha256:{hashlib.sha256(raw).hexdigest()}",
    )
    assert found["b.md"] is not None and found["b.md"].uri == "b.md"


class Rewritten(Shelf):
    """A source whose file is another when it is read for writing."""

    def read(self, item: Item) -> bytes:
        raw = super().read(item)
        return raw if self.reads.count(item.path) == 1 else raw + b"\n\nnew"


@pytest.mark.promise("SYN-7", "POL-3")
def test_a_file_that_changes_during_the_run_waits_for_the_next(world: World) -> None:
    world.run({"a.md": "未删节"}, policy(("alice",)))
    report = world.run(Rewritten({"a.md": "删节", "b.md": "乙"}), policy(("alice", "bob")))
    assert codes(report) == {"a.md": "source_changed", "b.md": "source_changed"}
    assert [(step.kind, step.doc_id, step.state) for step in report.steps] == [
        ("update", "a.md", "refused"),
        ("create", "b.md", "refused"),
        ("loosen", "a.md", "withheld"),
    ]
    assert world.found("未删节", "bob") == set() and world.orders() == {"a.md": ("live", 1, 1)}


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows that tests do not have")
@pytest.mark.promise("SYN-1", "POL-3")
def test_a_link_gives_nobody_more_than_its_file(world: World, tmp_path: Path) -> None:
    root = tmp_path / "docs"
    (root / "secret").mkdir(parents=True)
    (root / "secret" / "a.md").write_text("机密", encoding="utf-8")
    (root / "public.md").symlink_to(root / "secret" / "a.md")
    rules = Policy.from_yaml("{version: 1, default: ['*'], rules: [{match: secret/, allow: [bob]}]}")
    world.run(FolderSource(root), rules)
    assert (world.found("机密"), world.found("机密", "bob")) == (set(), {"public.md", "secret/a.md"})
    assert world.run(FolderSource(root), rules).steps == ()
    # What is kept because a listing is incomplete is judged by the same place.
    report = world.run(Shelf({"other.md": "乙"}, unlisted=("x",)), rules)
    assert kinds(report) == [("create", "other.md")] and len(report.kept) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        {"source": object()},
        {"source": Shelf},
        {"source": Shelf({"a.md": "x"}, connector="a\n")},
        {"rules": "*"},
        {"encodings": "utf-8"},
        {"confirm_deletions": -1},
        {"confirm_deletions": True},
        {"restore_all": 1},
    ],
    ids=range(8),
)
def test_arguments_are_checked(index: Index, arguments: dict[str, Any]) -> None:
    given = {"source": Shelf({"a.md": "x"}), "rules": EVERYONE} | arguments
    source, rules = given.pop("source"), given.pop("rules")
    refused = code_of(synchronise, index, source, rules, tenant=TENANT, **given)
    assert refused in ("invalid_parameter", "invalid_identity")
    assert code_of(synchronise, index, Shelf({"a.md": "x"}), EVERYONE, tenant="") == "invalid_identity"


class Broken(Shelf):
    """A connector whose author did not think of everything: `lists` and `reads_as` are called in place of its own."""

    lists: Any = None
    reads_as: Any = None

    def list(self) -> Listing:
        return super().list() if self.lists is None else cast(Listing, self.lists())

    def read(self, item: Item) -> bytes:
        return cast(bytes, self.reads_as(item)) if item.path == "a.md" else super().read(item)


def raises(*_given: object) -> None:
    raise OSError(5, "密码 in a message")


@pytest.mark.promise("SYN-5", "ERR-1", "ERR-2")
@pytest.mark.parametrize("reads_as", [raises, lambda item: item.path, lambda _: None], ids=["raises", "text", "none"])
def test_a_file_that_a_connector_fails_at_leaves_the_others_alone(world: World, reads_as: Any) -> None:
    world.run({"a.md": "# 旧文", "b.md": "# 乙"})
    broken = Broken({"a.md": "", "b.md": "# 丙"})
    broken.reads_as = reads_as
    report = world.run(broken)
    assert codes(report) == {"a.md": "source_unreadable"} and "密码" not in report.refused[0].facts
    assert kinds(report, "done") == [("update", "b.md")] and world.found("旧文") == {"a.md"}


@pytest.mark.promise("SYN-4", "ERR-2")
@pytest.mark.parametrize(
    "lists",
    [
        raises,
        lambda: None,
        list,
        lambda: Listing((cast(Item, 7),)),
        lambda: Listing((cast(Any, Item)(7, "", "", "text"),)),
    ],
    ids=["raises", "none", "list", "no item", "no path"],
)
def test_a_listing_that_is_none_deletes_nothing(world: World, lists: Any) -> None:
    world.run({"a.md": "# 甲"})
    before, broken = world.dump(), Broken({})
    broken.lists = lists
    error = error_of(world.run, broken)
    assert error is not None and error.code == "source_listing_incomplete"
    assert error.__context__ is None and world.dump() == before
