"""What indexing costs beside encoding, measured with a double in place of the model (PRF-5)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from kbretrieval.bench import encoding
from kbretrieval.bench.report import claim, table
from kbretrieval.bench.vectors import DenseDouble
from kbretrieval.encoders.port import Encoder, Encoding
from kbretrieval.evidence.verify import verify_folder

PARAMETERS = {"seed": 7, "queries": 1, "rounds": 1}


class Drifting(DenseDouble):
    """Gives another vector each time: an index would hold what nobody can compute again."""

    calls = 0

    def encode(self, texts: Sequence[str], *, query: bool) -> Encoding:
        Drifting.calls += 1
        made = np.asarray(super().encode(texts, query=query).vectors, np.float64)
        made[:, 0] += 0.01 * Drifting.calls
        return Encoding(list(made))


def plain(_threads: int | None) -> Encoder:
    return DenseDouble()


@pytest.mark.promise("PRF-5")
def test_vectors_are_compared_and_times_taken(tmp_path: Path) -> None:
    made = encoding.measure(tmp_path, 40, 7, 1, 1, plain)
    assert made.equalities[0].held
    assert len(made.equalities[0].rows) == 4
    assert {(s.what, s.way) for s in made.series} == {
        ("encode one document", "one thread"),
        ("encode one document", "two threads"),
        ("one document", "encoder alone"),
        ("one document", "upsert"),
    }
    assert [gate.promise for gate in made.gates] == ["PRF-5", "PRF-5"]
    assert "stored vectors equal" in table(made)


@pytest.mark.promise("PRF-5")
def test_a_vector_that_differs_is_seen(tmp_path: Path) -> None:
    made = encoding.measure(tmp_path, 20, 7, 1, 1, lambda _threads: Drifting())
    assert not made.equalities[0].held


def test_a_claim_is_written_and_holds(tmp_path: Path) -> None:
    made = encoding.measure(tmp_path, 20, 7, 1, 1, plain)
    open_gates = [type(gate)(gate.name, gate.ratio, 0.0, gate.promise) for gate in made.gates]
    figures = type(made)(
        made.part, made.size, made.series, made.equalities, tuple(open_gates), made.numbers, made.absent
    )
    claim(figures, PARAMETERS, tmp_path / "evidence")
    assert verify_folder(tmp_path / "evidence").exit_code == 0
