"""Solutions of chapter 08."""


def overlap(asked, title):
    distinct = set(asked)
    return len(distinct & set(title)) / len(distinct) if distinct else 0.0


def failure(candidates, shown, relevant):
    if relevant in shown:
        return "没有失败"
    return "排序" if relevant in candidates else "召回"


bait = "# 退款申请说明\n\n表格放在前台左侧的柜子里，填好后交给值班同事，盖章之后自行留底，遗失不补。"
