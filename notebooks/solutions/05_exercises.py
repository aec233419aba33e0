"""Solutions of chapter 05."""

import math


def expression(words):
    return " OR ".join('"' + word.replace('"', '""') + '"' for word in words)


def fts5_idf(total, holding):
    plain = math.log((total - holding + 0.5) / (holding + 0.5))
    return plain if plain > 0 else 1e-6


reworded = "酒店住宿每晚限额多少"
