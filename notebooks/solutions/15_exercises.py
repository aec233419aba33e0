"""Solutions of chapter 15."""


def averaged(rows):
    shares = [len(set(shown) & set(relevant)) / len(relevant) for shown, relevant in rows if relevant]
    return sum(shares) / len(shares) if shares else None


def least_rate(count, chance):
    return chance ** (1 / count)


unanswerable = "休年假时能申请退款吗"
