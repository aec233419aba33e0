"""int8 rows that select without losing anything: a certificate for exact dense search (PRF-3).

A unit vector v is stored as float32, and beside it as v = m + s * c + r: a mean m and a scale s per dimension that
belong to the encoder, int8 codes c, and what is left, r. Of r and c only the norms |r| and |c| are kept besides the
codes. For a query q let w = s * q (per dimension) be written as w = t * d + g with int8 codes d. Then

    q·v = q·m + t (d·c) + g·c + q·r,

Theorem. |q·v - (q·m + t (d·c))| <= |g| |c| + |q| |r|.
Proof. The difference is g·c + q·r; apply Cauchy–Schwarz to each.

So every row has a lower and an upper bound. Let L be the k-th largest lower bound: k rows score at least L, hence every
row of the exact best k scores at least L, and its upper bound is at least L. Reading only those rows as float32 gives
the exact best k, whatever m and s are; good constants only make them few.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbretrieval.encoders.port import Encoder

_simsimd: Any
try:
    import simsimd as _simsimd
except ImportError:  # an accelerator: without it the same integers come out, slower
    _simsimd = None

CODE_LIMIT = 127
# Rounding of the float64 sums and of bounds kept as float32 lies far below this.
SLACK = 2e-6
_EXACT_IN_FLOAT32 = 2**24

Codes = NDArray[np.int8]
Floats = NDArray[np.float64]
Norms = Any  # one float32 number or an array of them: NumPy's types do not tell that the result is of the same kind


@dataclass(frozen=True, slots=True)
class CodedRows:
    """int8 codes of shape (n, dimension); residual and code norms of shape (n,), float32, never below the true ones."""

    codes: Codes
    residuals: NDArray[np.float32]
    norms: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class CodedQuery:
    """A query's int8 codes, the value of one step, the constant part of every score, and the errors that remain."""

    codes: Codes
    step: float
    constant: float
    rest: float
    norm: float

    def bounds(self, dots: Floats, rows: CodedRows) -> tuple[Floats, Floats]:
        """Return lower and upper bounds of the exact scores, from the integer products of the codes."""
        rough, reach = self.constant + self.step * dots, self.reach(rows.norms, rows.residuals)
        return rough - reach, rough + reach

    def reach(self, norms: Norms, residuals: Norms) -> Norms:
        """Return the right-hand side of the theorem, |g| |c| + |q| |r|, and a little more; for one row or many."""
        return self.rest * norms + self.norm * residuals + SLACK


@dataclass(frozen=True, slots=True)
class Quantizer:
    """The constants of one encoder: mean and scale, each of shape (dimension,), and a name for the contract."""

    name: str
    mean: Floats = field(repr=False)
    scale: Floats = field(repr=False)

    def coded(self, vectors: NDArray[np.float32]) -> CodedRows:
        """Return codes and norms of float32 vectors of shape (n, dimension).

        Example:
            >>> plain(2).coded(np.array([[1.0, 0.0]], np.float32)).codes.tolist()
            [[127, 0]]
        """
        centred = vectors.astype(np.float64) - self.mean
        codes = np.clip(np.rint(centred / self.scale), -CODE_LIMIT, CODE_LIMIT)
        return CodedRows(codes.astype(np.int8), _norms(centred - codes * self.scale), _norms(codes))

    def query(self, vector: NDArray[np.float32]) -> CodedQuery:
        """Return the codes of a query vector of shape (dimension,)."""
        wide = vector.astype(np.float64)
        weights = wide * self.scale
        step = float(np.abs(weights).max()) / CODE_LIMIT or 1.0
        codes = np.rint(weights / step)
        rest = float(np.linalg.norm(weights - step * codes))
        return CodedQuery(codes.astype(np.int8), step, float(wide @ self.mean), rest, float(np.linalg.norm(wide)))


def _norms(rows: Floats) -> NDArray[np.float32]:
    # Rounded up: a bound may be too wide, never too narrow.
    exact = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    above: NDArray[np.float32] = np.nextafter(exact.astype(np.float32), np.float32(np.inf))
    return above


def plain(dimension: int) -> Quantizer:
    """Return the quantizer of an encoder without constants of its own: mean 0, and one scale for all dimensions.

    The scale reaches six standard deviations of a component of a random unit vector, at most 1.
    """
    reach = min(1.0, 6.0 / np.sqrt(max(dimension, 1)))
    return Quantizer("int8-plain/1", np.zeros(dimension), np.full(dimension, reach / CODE_LIMIT))


def quantizer_of(encoder: Encoder) -> Quantizer:
    """Return the quantizer that an encoder brings as `quantizer`, if it fits its dimension, else the plain one."""
    own = getattr(encoder, "quantizer", None)
    if isinstance(own, Quantizer) and own.mean.shape == own.scale.shape == (encoder.dimension,):
        return own
    return plain(encoder.dimension)


def integer_dots(rows: Codes, query: Codes) -> Floats:
    """Return the exact integer products of code rows (n, dimension) with query codes (dimension,), as float64.

    Computed by `simsimd` where it is installed. Without it float32 products do: every partial sum is an integer below
    2^24, so they are exact in any order, and the result is the same.

    Example:
        >>> integer_dots(np.array([[1, 2], [3, 4]], np.int8), np.array([5, 6], np.int8)).tolist()
        [17.0, 39.0]
    """
    if not len(rows):
        return np.zeros(0)
    if _simsimd is not None:
        products: Floats = np.asarray(_simsimd.cdist(query[None, :], rows, metric="dot"), np.float64).reshape(-1)
        return products
    wide = np.float32 if query.size * CODE_LIMIT**2 < _EXACT_IN_FLOAT32 else np.float64
    exact: Floats = (rows.astype(wide) @ query.astype(wide)).astype(np.float64)
    return exact
