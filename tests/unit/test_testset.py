"""The loader of test sets: strict, with file and line, and digests of what was read (QUA-1)."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kbretrieval.errors import InvalidFixture
from kbretrieval.evaluation.testset import FILES, load_judged_set
from tests.unit.small_set import write_set


@pytest.mark.promise("QUA-1")
def test_a_set_is_read_with_its_digests(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "Small_Set")
    judged = load_judged_set(folder)
    assert judged.name == "Small_Set"
    assert (len(judged.passages), len(judged.questions), len(judged.measurable)) == (24, 24, 24)
    assert judged.questions[1].judged == {"p1": 1, "p6": 1} and judged.questions[2].relevant == {"p2"}
    assert judged.sha256 == {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES}
    assert judged.passages[0].source == judged.passages[0].title + "\n" + judged.passages[0].text


def _line(name: str, number: int, text: str | None) -> Callable[[Path], None]:
    """Replace line `number` of a file, or remove it."""

    def change(folder: Path) -> None:
        lines = (folder / name).read_text(encoding="utf-8").split("\n")
        lines[number - 1 : number] = [] if text is None else [text]
        (folder / name).write_text("\n".join(lines), encoding="utf-8", newline="\n")

    return change


def _raw(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


def _record(**fields: object) -> str:
    return json.dumps(fields, ensure_ascii=False)


MALFORMED = [
    (lambda folder: (folder / "qrels.tsv").unlink(), "qrels.tsv is required"),
    (_line("corpus.jsonl", 3, "{"), "corpus.jsonl, line 3: one JSON object"),
    (_line("corpus.jsonl", 3, "[1]"), "corpus.jsonl, line 3: an object with the strings _id, title, text"),
    (_line("corpus.jsonl", 3, ""), "corpus.jsonl, line 3: one JSON object"),
    (_line("corpus.jsonl", 3, '{"_id":"x","_id":"y","title":"","text":"a"}'), "line 3: one JSON object without"),
    (_line("corpus.jsonl", 3, _record(_id="x", text="a")), "corpus.jsonl, line 3: an object with the strings"),
    (_line("corpus.jsonl", 3, _record(_id=7, title="", text="a")), "corpus.jsonl, line 3: an object with the strings"),
    (_line("corpus.jsonl", 3, _record(_id="x y", title="", text="a")), "line 3: an _id without white space"),
    (_line("corpus.jsonl", 3, _record(_id="p0", title="", text="a")), "line 3: an _id may stand once"),
    (_line("corpus.jsonl", 3, _record(_id="x", title=" ", text="\n")), "line 3: a title or a text is required"),
    (_line("corpus.jsonl", 3, '{"_id":"x","title":"","text":"\\ud800"}'), "line 3: text without lone surrogates"),
    (_line("queries.jsonl", 2, _record(_id="q1", text="")), "queries.jsonl, line 2: 1 to 1024 code points"),
    (_line("queries.jsonl", 2, _record(_id="q1", text="长" * 1025)), "line 2: 1 to 1024 code points are required"),
    (_line("queries.jsonl", 2, None), "qrels.tsv, line 4: an _id of queries.jsonl is required"),
    (_line("qrels.tsv", 1, "query\tdoc\tgrade"), "qrels.tsv, line 1: the header"),
    (_line("qrels.tsv", 2, "q0 p0 1"), "qrels.tsv, line 2: query, document and a whole number"),
    (_line("qrels.tsv", 2, "q0\tp0\t1.5"), "qrels.tsv, line 2: query, document and a whole number"),
    (_line("qrels.tsv", 2, "q0\tnone\t1"), "qrels.tsv, line 2: an _id of corpus.jsonl is required"),
    (_line("qrels.tsv", 3, "q0\tp0\t0"), "qrels.tsv, line 3: a pair may be judged once"),
    (_raw("qrels.tsv", b"query-id\tcorpus-id\tscore\nq0\tp0\t0\n"), "qrels.tsv: a judgement above 0"),
    (_raw("corpus.jsonl", b'{"_id":"p0","title":"","text":"a"}\n\xff\n'), "corpus.jsonl, line 2: UTF-8"),
]  # fmt: skip


@pytest.mark.promise("QUA-1")
@pytest.mark.parametrize(("change", "message"), MALFORMED, ids=[message for _, message in MALFORMED])
def test_a_malformed_set_is_refused_by_file_and_line(
    tmp_path: Path, change: Callable[[Path], None], message: str
) -> None:
    folder = write_set(tmp_path / "set")
    change(folder)
    with pytest.raises(InvalidFixture) as refused:
        load_judged_set(folder)
    assert message in str(refused.value)
    assert "制度" not in str(refused.value)


@pytest.mark.promise("QUA-1")
def test_line_ends_and_separators_inside_a_text_are_no_lines(tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set")
    for name in FILES:
        (folder / name).write_bytes((folder / name).read_bytes().replace(b"\n", b"\r\n"))
    _line("corpus.jsonl", 1, '{"_id":"p0","title":"","text":"一\u2028二"}\r')(folder)
    judged = load_judged_set(folder)
    assert judged.passages[0].source == "一\u2028二" and judged.questions[0].judged["p0"] == 1


@pytest.mark.promise("QUA-1")
@pytest.mark.parametrize(
    ("name", "passages", "questions", "judgements"),
    [("stard_small", 1444, 1543, 2717), ("cmrc2018_dev", 848, 3219, 3219)],
)
def test_the_public_sets_are_read(shared: Path, name: str, passages: int, questions: int, judgements: int) -> None:
    judged = load_judged_set(shared / "testsets" / name)
    assert (len(judged.passages), len(judged.measurable)) == (passages, questions)
    assert sum(len(question.judged) for question in judged.questions) == judgements
