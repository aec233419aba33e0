"""Solutions of chapter 4."""

from itertools import pairwise


def next_start(start, end, overlap):
    """Return where the next window begins: one overlap before the end, and never at the same place again."""
    return max(start + 1, end - overlap)


def covers(found, length):
    """Tell whether windows lead from 0 to the length without a gap, each one beginning later than the one before."""
    if not found:
        return length == 0
    steps = all(before[0] < after[0] <= before[1] for before, after in pairwise(found))
    return found[0][0] == 0 and found[-1][1] == length and steps


def safe_window(longest):
    """Return window and overlap under which no run of `longest` code points is torn."""
    overlap = longest - 1
    return 2 * overlap, overlap
