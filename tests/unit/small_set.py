"""A small synthetic test set, written to a folder, and a dense encoder that counts what it encodes."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kbretrieval.encoders.port import Encoding

WORDS = ["年假", "差旅", "发票", "门禁", "报销", "合同", "工资", "社保", "培训", "出差", "采购", "印章"]


def write_set(folder: Path, passages: int = 24, questions: int = 24) -> Path:
    """Write a set whose question n is answered by passage n; its words overlap with the neighbours' on purpose."""
    folder.mkdir(parents=True, exist_ok=True)
    count = len(WORDS)
    corpus = [
        {
            "_id": f"p{n}",
            "title": f"{WORDS[n % count]}制度{n}",
            "text": f"{WORDS[(n + 1) % count]}与第{n}条办理说明{n * 7}号。",
        }
        for n in range(passages)
    ]
    queries = [
        {"_id": f"q{n}", "text": f"{WORDS[(n + 1) % count]}的第{n}条办理说明{n * 7}号是什么？", "answers": []}
        for n in range(questions)
    ]
    for name, rows in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / name).write_text(lines, encoding="utf-8", newline="\n")
    judged = "".join(f"q{n}\tp{n % passages}\t1\nq{n}\tp{(n + 5) % passages}\t{n % 2}\n" for n in range(questions))
    header = "query-id\tcorpus-id\tscore\n"
    (folder / "qrels.tsv").write_text(header + judged, encoding="utf-8", newline="\n")
    return folder


class CountingEncoder:
    """A dense encoder whose vectors depend on the text alone; it counts the texts that it encodes."""

    def __init__(self, identifier: str = "counting:1", floor: float = -1.0) -> None:
        self.identifier = identifier
        self.dimension = 8
        self.floor = floor
        self.calls = 0

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        """Return a vector for each text, drawn from its digest; texts that end in `号。` count as truncated."""
        self.calls += len(texts)
        made = []
        for text in texts:
            seed = int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:4], "big") + query
            made.append(np.random.default_rng(seed).normal(size=self.dimension))
        return Encoding(made, frozenset(n for n, text in enumerate(texts) if text.endswith("号。")))
