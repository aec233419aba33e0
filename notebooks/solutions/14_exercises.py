"""Solutions of chapter 14."""


def moved(before, after):
    if before == after:
        return "不变"
    if before is None:
        return "补回"
    if after is None:
        return "弄丢"
    return "上升" if after < before else "下降"


def uncertain(scores, floor, tolerance):
    return [score for score in scores if abs(score - floor) <= tolerance]


unseen = "东西坏了拿去哪里修理"
