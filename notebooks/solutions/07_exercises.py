"""Solutions of chapter 07."""


def fused(ranks, k):
    return sum((1 / (k + rank) for rank in ranks if rank is not None), 0.0)


def turning_k(peak, even):
    return next((k for k in range(1, 1001) if fused(even, k) > fused(peak, k)), None)


two_lists = (["a", "x"], ["b", "x"])
