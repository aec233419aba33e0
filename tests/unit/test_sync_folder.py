"""A folder as a source: identities, what is passed over, what a complete listing is, and encodings (SYN-1, SYN-2)."""

import codecs
import os
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kbretrieval.errors import SourceListingIncomplete, SourceTooLarge, SourceUnreadable, UnsupportedEncoding
from kbretrieval.projection import MAX_SOURCE_BYTES
from kbretrieval.sync import Encodings, FolderSource, Item
from kbretrieval.sync.examining import named_id
from kbretrieval.sync.source import printable
from tests.unit.doubles import code_of, error_of

NAMES_ARE_BYTES = pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps every name as its bytes")
POSIX = pytest.mark.skipif(os.name != "posix", reason="links and pipes need rights on Windows that tests do not have")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    root.mkdir()
    return root


def put(root: Path, name: str, text: str = "正文") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def paths(root: Path) -> list[str]:
    return [item.path for item in FolderSource(root).list().items]


def skipped(root: Path) -> dict[str, str]:
    return {item.path: item.reason for item in FolderSource(root).list().skipped}


@pytest.mark.promise("SYN-1", "SYN-2")
def test_identities_are_paths_below_the_root_and_formats_come_from_endings(docs: Path) -> None:
    for name in (
        "b.md",
        "a/制度 1/年假.MARKDOWN",
        "a/x.txt",
        "a/x.json",
        "a/x.pdf",
        "README",
        ".h.md",
        ".git/x.md",
    ):
        put(docs, name)
    found = FolderSource(docs).list()
    assert [(item.path, item.format) for item in found.items] == [
        ("a/x.json", "json"),
        ("a/x.txt", "text"),
        ("a/制度 1/年假.MARKDOWN", "markdown"),
        ("b.md", "markdown"),
    ]
    assert skipped(docs) == {
        ".git": "hidden",
        ".h.md": "hidden",
        "README": "unsupported_format",
        "a/x.pdf": "unsupported_format",
    }
    assert found.unlisted == ()
    assert found == FolderSource(str(docs)).list()


@pytest.mark.promise("SYN-1")
def test_a_name_in_another_normal_form_has_the_same_identity(docs: Path) -> None:
    put(docs, unicodedata.normalize("NFD", "café.md"), "text")
    (item,) = FolderSource(docs).list().items
    assert item.path == unicodedata.normalize("NFC", "café.md")
    assert FolderSource(docs).read(item) == b"text"


@NAMES_ARE_BYTES
@pytest.mark.promise("SYN-1")
def test_a_name_is_the_same_in_a_locale_without_utf_8(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(docs, "制度/年假.md")
    expected = FolderSource(docs).list()
    original = os.scandir

    class Entry:
        """An entry whose name has come as escaped bytes, as it does where the locale is ASCII."""

        def __init__(self, entry: os.DirEntry[str]) -> None:
            self._entry, self.path = entry, entry.path
            self.name = os.fsencode(entry.name).decode("ascii", "surrogateescape")

        def __getattr__(self, name: str) -> object:
            return getattr(self._entry, name)

    @contextmanager
    def listing(path: Path) -> Iterator[list[Entry]]:
        with original(path) as found:
            yield [Entry(entry) for entry in found]

    monkeypatch.setattr(os, "scandir", listing)
    assert [item.path for item in FolderSource(docs).list().items] == [item.path for item in expected.items]


@NAMES_ARE_BYTES
@pytest.mark.promise("SYN-1")
def test_a_name_that_is_no_text_is_listed_and_can_be_read(docs: Path) -> None:
    (docs / os.fsdecode(b"a\xff.md")).write_bytes(b"text")
    (item,) = FolderSource(docs).list().items
    assert printable(item.path) == "a\\udcff.md"
    assert FolderSource(docs).read(item) == b"text"


@POSIX
@pytest.mark.promise("SYN-1")
def test_links_pipes_and_devices(docs: Path, tmp_path: Path) -> None:
    put(tmp_path, "outside/secret.md", "秘密")
    put(docs, "a/real.md")
    (docs / "leaves.md").symlink_to(tmp_path / "outside" / "secret.md")
    (docs / "leaves").symlink_to(tmp_path / "outside")
    (docs / "up").symlink_to("..")
    (docs / "a" / "round").symlink_to("../a")
    (docs / "root").symlink_to(".")
    (docs / "inner.md").symlink_to("a/real.md")
    (docs / "way").symlink_to("a")
    (docs / "null.md").symlink_to("/dev/null")
    os.mkfifo(docs / "pipe.md")
    assert paths(docs) == ["a/real.md", "inner.md", "way/real.md"]
    assert skipped(docs) == {
        "a/round": "symlink_loop",
        "leaves": "symlink_leaves_root",
        "leaves.md": "symlink_leaves_root",
        "null.md": "symlink_leaves_root",
        "pipe.md": "not_a_regular_file",
        "root": "symlink_loop",
        "up": "symlink_leaves_root",
        "way/round": "symlink_loop",
    }
    assert {item.place for item in FolderSource(docs).list().items} == {"a/real.md"}
    assert FolderSource(docs).list().unlisted == ()


@POSIX
@pytest.mark.promise("SYN-1")
def test_folders_that_lead_to_each_other_are_walked_once(docs: Path) -> None:
    for here, there in (("x", "y"), ("y", "x")):
        put(docs, f"{here}/{here}.md")
        (docs / here / "way").symlink_to(f"../{there}")
    assert paths(docs) == ["x/way/y.md", "x/x.md", "y/way/x.md", "y/y.md"]
    assert skipped(docs) == {"x/way/way": "symlink_loop", "y/way/way": "symlink_loop"}


@POSIX
@pytest.mark.promise("SYN-1")
def test_a_file_that_became_a_link_is_not_followed_out_of_the_root(docs: Path, tmp_path: Path) -> None:
    put(tmp_path, "secret.md", "秘密")
    put(docs, "other.md")
    for end in (tmp_path / "secret.md", docs / "other.md"):
        path = put(docs, "a.md")
        item = next(item for item in FolderSource(docs).list().items if item.path == "a.md")
        path.unlink()
        path.symlink_to(end)
        assert isinstance(error_of(FolderSource(docs).read, item), SourceUnreadable)
        path.unlink()


@POSIX
@pytest.mark.promise("SYN-4", "SYN-5")
def test_a_link_that_leads_nowhere_proves_nothing(docs: Path) -> None:
    put(docs, "a.md")
    (docs / "gone.md").symlink_to("nowhere.md")
    (docs / "self.md").symlink_to("self.md")
    (docs / "folder").symlink_to("nowhere")
    found = FolderSource(docs).list()
    assert [item.path for item in found.items] == ["a.md", "gone.md", "self.md"]
    assert found.unlisted == ("folder",)
    for item in found.items[1:]:
        assert isinstance(error_of(FolderSource(docs).read, item), SourceUnreadable)


@pytest.mark.promise("SYN-4")
def test_a_root_that_cannot_be_listed_is_refused(docs: Path, tmp_path: Path) -> None:
    for root in (tmp_path / "absent", put(tmp_path, "file.md"), Path("x\x00y")):
        assert isinstance(error_of(FolderSource(root).list), SourceListingIncomplete)


@pytest.mark.promise("SYN-4")
def test_a_folder_that_cannot_be_looked_into_makes_the_listing_incomplete(
    docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(docs, "a/x.md")
    put(docs, "制度/y.md")
    original = os.scandir

    def refused(path: Path) -> object:
        if Path(path).name == "制度":
            raise PermissionError(13, "refused")
        return original(path)

    monkeypatch.setattr(os, "scandir", refused)
    found = FolderSource(docs).list()
    assert ([item.path for item in found.items], found.unlisted) == (["a/x.md"], ("制度",))


@pytest.mark.promise("SYN-5")
def test_reading_refuses_what_is_gone_or_too_large(docs: Path) -> None:
    source = FolderSource(docs)
    assert isinstance(error_of(source.read, Item("x.md", "x.md", "x.md", "markdown")), SourceUnreadable)
    (docs / "x.md").mkdir()
    assert isinstance(error_of(source.read, Item("x.md", "x.md", "x.md", "markdown")), SourceUnreadable)
    with put(docs, "y.md").open("wb") as file:
        file.truncate(MAX_SOURCE_BYTES + 1)
    assert isinstance(error_of(source.read, source.list().items[0]), SourceTooLarge)


TEXT = "年假五天，한국어 Ünï."
GIVEN = [
    (TEXT.encode("utf-8"), "a.md", (), TEXT),
    (codecs.BOM_UTF8 + TEXT.encode("utf-8"), "a.md", ("gbk",), "\ufeff" + TEXT),
    (codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"), "a.md", (), TEXT),
    (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), "a.md", ("gbk", "*=gbk"), TEXT),
    ("年假".encode("gb18030"), "a.md", ("gb18030",), "年假"),
    ("年假".encode("big5"), "旧/a.md", ("gb18030", "旧/**=big5"), "年假"),
    ("年假".encode("big5"), "旧/a.md", ("旧/**=gbk", "a.md=big5"), "年假"),
    ("年假".encode("utf-16-le"), "a.md", ("*=utf-16-le",), "年假"),
    ("年假".encode(), "a.md", ("gb18030",), "年假"),
    (b"", "a.md", (), ""),
]


@pytest.mark.promise("SYN-2")
@pytest.mark.parametrize(("raw", "path", "options", "text"), GIVEN, ids=range(len(GIVEN)))
def test_bytes_become_text_by_mark_rule_utf8_or_the_named_encoding(
    raw: bytes, path: str, options: tuple[str, ...], text: str
) -> None:
    assert Encodings.parse(options).decoded(raw, path) == text


@pytest.mark.promise("SYN-2")
@pytest.mark.parametrize(
    ("raw", "options", "said"),
    [
        ("年假".encode("gb18030"), (), "named encoding is required, byte 0 is none"),
        ("x한국".encode("cp949"), (), "byte 1 is none"),
        (codecs.BOM_UTF16_LE + b"a", (), "utf-16 is required"),
        (codecs.BOM_UTF32_LE + "a".encode("utf-32-le"), (), "UTF-8"),
        (codecs.BOM_UTF8 + b"\xff", ("gbk",), "utf-8 is required, byte 3"),
        (b"\xff\xff", ("gb18030",), "gb18030 is required"),
        (b"\xff", ("*=ascii", "gb18030"), "ascii is required, byte 0"),
    ],
)
def test_nothing_is_guessed(raw: bytes, options: tuple[str, ...], said: str) -> None:
    error = error_of(Encodings.parse(options).decoded, raw, "a.md")
    assert isinstance(error, UnsupportedEncoding) and said in str(error)
    assert error.__context__ is None


@pytest.mark.promise("SYN-2")
@pytest.mark.parametrize(
    "name", ["no-such", "", "hex", "rot13", "idna", "unicode_escape", "undefined", "utf-16", "x\0"]
)
def test_a_name_that_is_no_text_encoding_of_every_machine_is_refused(name: str) -> None:
    assert code_of(Encodings.parse, [name]) == "unsupported_encoding"
    assert code_of(Encodings.parse, [f"*={name}"]) == "unsupported_encoding"
    assert code_of(Encodings, rest=name) == "unsupported_encoding"


NAMED = [
    ("---\nid: 差旅\n---\n正文", "差旅"),
    ("\ufeff---\r\ntitle: x\r\nid: '7'\r\n...\r\n", "7"),
    ("---\nid: e\u0301\n---\n", "é"),
    ("---\nid: \n---\n", ""),
    ("---\ntitle: x\n---\nid: y", None),
    ("id: x\n", None),
    ("# 甲\n\n---\nid: x\n---\n", None),
    ("---\n正文\n---\n", None),
]


@pytest.mark.promise("SYN-1")
@pytest.mark.parametrize(("text", "expected"), NAMED, ids=range(len(NAMED)))
def test_front_matter_may_name_the_document(text: str, expected: str | None) -> None:
    assert named_id(text) == expected


@pytest.mark.promise("SYN-1")
@pytest.mark.parametrize(
    "text",
    [
        "---\nid: [x]\n---\n",
        "---\nid: x\ntitle: 'y\n---\n",
        "---\nid: x\nno end",
        "---\n- a\nid: x\n---",
        "---\nid: x\n" + "a: b\n" * 4000 + "---\n",
    ],
    ids=range(5),
)
def test_a_named_identity_is_never_lost_to_a_slip(text: str) -> None:
    assert code_of(named_id, text) == "invalid_front_matter"
