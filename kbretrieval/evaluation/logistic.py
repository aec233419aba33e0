"""Logistic regression in a few lines of NumPy: Newton's method with a small ridge, on standardised features."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbretrieval.errors import InvalidParameter

RIDGE = 1e-3
STEPS = 50

Table = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Logistic:
    """A fitted rule: weights of standardised features, the intercept last; `score` ranks, it is no probability."""

    mean: Table
    spread: Table
    weights: Table

    def score(self, features: Table) -> Table:
        """Return one number a row, greater where an answer is likelier; shape (rows,)."""
        scaled = (features - self.mean) / self.spread
        scores: Table = scaled @ self.weights[:-1] + self.weights[-1]
        return scores


def fit(features: Table, labels: NDArray[np.bool_]) -> Logistic:
    """Return the rule that separates true from false labels; `features` has shape (rows, features).

    Deterministic: it starts at zero and stops after at most 50 Newton steps; the ridge keeps separable data finite.
    Raises `invalid_parameter` where one of both labels is missing.

    Example:
        >>> rule = fit(np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([False, False, True, True]))
        >>> bool(rule.score(np.array([[3.0]]))[0] > rule.score(np.array([[0.0]]))[0])
        True
    """
    if labels.all() or not labels.any():
        raise InvalidParameter(f"questions with and without an answer are required, {len(labels)} of one kind given")
    mean, spread = features.mean(axis=0), features.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    design = np.hstack([(features - mean) / spread, np.ones((len(features), 1))])
    penalty = RIDGE * len(design) * np.diag([*[1.0] * features.shape[1], 0.0])
    weights = np.zeros(design.shape[1])
    for _ in range(STEPS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(design @ weights, -30.0, 30.0)))
        slope = design.T @ (labels - chance) - penalty @ weights
        curve = (design * (chance * (1.0 - chance) + 1e-9)[:, None]).T @ design + penalty
        step = np.linalg.solve(curve, slope)
        weights = weights + step
        if float(np.abs(step).max()) < 1e-9:
            break
    return Logistic(mean, spread, weights)
