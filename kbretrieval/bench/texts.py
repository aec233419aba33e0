"""Synthetic documents and queries with the bigram statistics of the fixtures, the same from the same seed.

How a text is made. A vocabulary of 20,000 words is drawn once: half of them are walks of two to five characters along
the second-order Markov chain of the fixtures' own texts (the next character is drawn as often as it follows the last
two there); the other half are two or three of the 3,755 commonest simplified characters (the first level of GB 2312),
drawn by Zipf's law, so that a large corpus is not made of the fixtures' few hundred characters alone; one word in
fifty is a code such as `e0421`. A document is a sequence of words drawn with probability proportional to
1 / (rank + 50) (Zipf and Mandelbrot), with a comma after every seventh word and a full stop after every twenty-first.
What such a text says is nothing: it serves for times and equalities, never for relevance.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

import numpy as np
from numpy.typing import NDArray

from kbretrieval.analysis import query_terms
from kbretrieval.chunking import DEFAULT_OVERLAP, DEFAULT_SIZE
from kbretrieval.evaluation.corpus import load_corpus
from kbretrieval.projection import project

WORDS = 20_000
_FLATTENING = 50
_FIRST_LEVEL = (range(0xB0, 0xD8), range(0xA1, 0xFF))
_COMMA_AFTER, _STOP_AFTER = 7, 21
_STEPS = 1 << 16


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Words by rank, the cumulative probability of each, and the seed that texts are made from.

    For speed: `spelled`, the words in UTF-16 units, zeros after each, shape (words, longest word + 1); `guide`, the
    number of the word at each of 65,536 equal steps of probability.
    """

    words: tuple[str, ...]
    cumulative: NDArray[np.float64]
    seed: int
    spelled: NDArray[np.uint16]
    guide: NDArray[np.int64]


def fixture_bodies() -> tuple[str, ...]:
    """Return the projected texts of the book's fixtures, the one source of the statistics."""
    return tuple(project(item.source, item.format).body for item in load_corpus().documents)


def second_order(bodies: tuple[str, ...]) -> dict[str, str]:
    """Return two characters → every character that follows them, repeated as often as it does.

    Example:
        >>> second_order(("报销报销单",))
        {'报销': '报单', '销报': '销'}
    """
    after: defaultdict[str, str] = defaultdict(str)
    for body in bodies:
        letters = "".join(character for character in body if character.isalpha() and not character.isascii())
        for first, second, third in zip(letters, letters[1:], letters[2:], strict=False):
            after[first + second] += third
    return dict(after)


def common_characters() -> str:
    """Return the 3,755 characters of the first level of GB 2312, which holds the commonest ones."""
    cells = ((row, cell) for row in _FIRST_LEVEL[0] for cell in _FIRST_LEVEL[1])
    return "".join(bytes(pair).decode("gb2312", errors="ignore") for pair in cells)


def _walks(chain: dict[str, str], draw: random.Random) -> Iterator[str]:
    starts = sorted(chain)
    while True:
        word = draw.choice(starts)
        for _ in range(draw.randrange(4)):
            following = chain.get(word[-2:])
            if following is None:
                break
            word += draw.choice(following)
        yield word


def _compounds(draw: random.Random) -> Iterator[str]:
    letters = list(common_characters())
    draw.shuffle(letters)
    weights = list(accumulate(1.0 / (rank + _FLATTENING) for rank in range(1, len(letters) + 1)))
    while True:
        yield "".join(draw.choices(letters, cum_weights=weights, k=2 + (draw.random() < 0.3)))


def vocabulary(seed: int, words: int = WORDS) -> Vocabulary:
    """Return the vocabulary of a seed: distinct words of two or more characters, commonest first.

    Example:
        >>> vocabulary(7, 100).words == vocabulary(7, 100).words
        True
    """
    draw = random.Random(f"vocabulary {seed}")
    codes = (f"{draw.choice('abcdeht')}{number:04d}" for number in range(10_000))
    sources = [_walks(second_order(fixture_bodies()), draw), *([_compounds(draw)] * 2)]
    found: dict[str, None] = {}
    for number in range(100 * words):
        if len(found) == words:
            break
        # Short walks along a small chain soon repeat, so a tenth of the words may come late from the compounds.
        source = codes if number % 50 == 49 else sources[number % 2]
        found.update(dict.fromkeys(islice(source, 1)))
    weights = 1.0 / (np.arange(1, len(found) + 1) + _FLATTENING)
    cumulative = np.cumsum(weights) / weights.sum()
    cumulative[-1] = 1.0  # no draw lies above it, whatever the sum was rounded to
    guide = np.searchsorted(cumulative, np.arange(_STEPS) / _STEPS, side="right")
    return Vocabulary(tuple(found), cumulative, seed, _spelled(tuple(found)), guide)


def text(chosen: Vocabulary, number: int, code_points: int) -> str:
    """Return running text number `number` with exactly `code_points` code points and no blank line.

    Example:
        >>> len(text(vocabulary(7, 100), 0, 333))
        333
    """
    generator = np.random.Generator(np.random.PCG64([chosen.seed, number]))
    draws = generator.random(code_points // 2 + 1)
    # Words have two or more characters: all draws are always enough, and most often four fifths of them are.
    for used in (len(draws) * 4 // 5, len(draws)):
        made = _punctuated(chosen, draws[:used])
        if len(made) >= code_points:
            break
    return made[:code_points]


def _punctuated(chosen: Vocabulary, draws: NDArray[np.float64]) -> str:
    # Equal to searchsorted(cumulative, draws, side="right"), which takes half of a text's time.
    drawn = chosen.guide[(draws * _STEPS).astype(np.int64)]
    while (behind := chosen.cumulative[drawn] <= draws).any():
        drawn += behind
    units = chosen.spelled[drawn]
    units[_COMMA_AFTER - 1 :: _COMMA_AFTER, -1] = ord("，")
    units[_STOP_AFTER - 1 :: _STOP_AFTER, -1] = ord("。")
    return str(units[units != 0].tobytes(), "utf-16-le")


def _spelled(words: Sequence[str]) -> NDArray[np.uint16]:
    """Return words as rows of UTF-16 units, zeros after each, the last column left for a mark."""
    width = max(map(len, words)) + 1
    joined = "".join(word.ljust(width, "\0") for word in words)
    return np.frombuffer(joined.encode("utf-16-le"), "<u2").reshape(len(words), width)


def source(chosen: Vocabulary, number: int, chunks: int) -> str:
    """Return Markdown source that the default window cuts into exactly `chunks` chunks.

    Each chunk but the last is 220 code points long, and each after the first begins 40 before the last one's end.

    Example:
        >>> len(source(vocabulary(7, 100), 0, 2))
        400
    """
    code_points = DEFAULT_SIZE + (chunks - 1) * (DEFAULT_SIZE - DEFAULT_OVERLAP)
    title = f"# {chosen.words[number % len(chosen.words)]}\n\n"
    return title + text(chosen, number, code_points - len(title))


def query(chosen: Vocabulary, number: int, terms: int) -> str:
    """Return a passage of document `number` with exactly `terms` distinct terms: a query that quotes.

    Example:
        >>> len(query_terms(query(vocabulary(7, 100), 3, 8))[0])
        8
    """
    passage = text(chosen, number, 40 * terms + 200)
    begin = passage.index("。") + 1
    end = begin + terms
    while len(query_terms(passage[begin:end])[0]) < terms:
        end += 1
    return passage[begin:end]
