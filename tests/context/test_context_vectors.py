"""Vectors inside a scope, judged on Chinese samples: what words cannot find, the real model finds (CTX-6)."""

from collections.abc import Iterator

import pytest

from kbretrieval import Context, Index
from kbretrieval.analysis import terms
from kbretrieval.context import Scope, Selection, TaskContexts
from kbretrieval.encoders.bge import BGEEncoder

# A passage, and a question about it that shares no term with it or any other.
SAMPLES = {
    "refund": (
        "# 退款\n\n签收后七天之内可以申请退款，钱款原路返回。",
        "买来的东西不想要了，怎样把货送回去拿回自己的付出",
    ),
    "leave": ("# 年假\n\n入职满一年的员工每年享有五天带薪休假。", "工作多久才能拿到不扣工资的假期"),
    "travel": ("# 差旅\n\n出差住宿每晚限额五百元，凭发票报销。", "到外地去过夜，旅馆费用最多能花多少"),
    "remote": ("# 远程办公\n\n每周至多两天可以在家里上班，须事先报备。", "不去公司，待在自己家做事行不行"),
    "laptop": ("# 设备\n\n笔记本电脑损坏由信息部维修，遗失按原价赔偿。", "手提计算机坏掉了找谁修"),
}


@pytest.fixture(scope="module")
def asked(bge: BGEEncoder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TaskContexts, Scope]]:
    """A scope of the samples; outside of it, for each question, a document that is the question itself."""
    with Index.open(tmp_path_factory.mktemp("samples") / "kb.sqlite", bge) as index:
        tasks = TaskContexts(index)
        for doc_id, (text, question) in SAMPLES.items():
            index.upsert("acme", doc_id, 1, "markdown", text, ["alice"])
            index.upsert("acme", f"lure-{doc_id}", 1, "text", question, ["alice"])
            for name in (doc_id, f"lure-{doc_id}"):
                tasks.release("acme", name, ["answering"])
        tasks.put_collection("acme", "samples", list(SAMPLES))
        tasks.put_collection("acme", "lures", [f"lure-{doc_id}" for doc_id in SAMPLES])
        yield tasks, tasks.authorize_scope(Context("acme", "alice"), "T-7", "answering", Selection(["samples"]))


@pytest.mark.model
@pytest.mark.promise("CTX-6", "CTX-5")
@pytest.mark.parametrize("doc_id", SAMPLES)
def test_a_paraphrase_without_a_common_term_is_found_by_its_vector(
    asked: tuple[TaskContexts, Scope], doc_id: str
) -> None:
    tasks, scope = asked
    question = SAMPLES[doc_id][1]
    assert not set(terms(question)) & {term for text, _ in SAMPLES.values() for term in terms(text)}
    found = tasks.search(scope, question)
    assert found.rows[0].doc_id == doc_id
    assert {place.channel for row in found.rows for place in row.channels} == {"vector"}
    assert {row.doc_id for row in found.rows} <= set(SAMPLES), "nothing from outside, however near"
    nothing = tasks.search(scope, question, mode="lexical")
    assert (nothing.rows, nothing.empty_reason) == ((), "no_match")
