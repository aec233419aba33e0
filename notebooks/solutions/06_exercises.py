"""Solutions of chapter 06."""

import math


def counted_cosine(left, right):
    squares = sum(n * n for n in left.values()) * sum(n * n for n in right.values())
    dot = sum(count * right.get(term, 0) for term, count in left.items())
    return dot / math.sqrt(squares) if squares else 0.0


def pooled(rows):
    length = math.sqrt(sum(value * value for value in rows[0]))
    return [value / length for value in rows[0]]


unseen = "出门在外，旅店过夜房费可以花到多少？"
