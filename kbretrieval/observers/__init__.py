"""What a maintainer sees of an index in use: behaviour in numbers, never a text (OBS-3, OBS-4; chapter 16).

events.py      the frozen events, and what an observer is
watch.py       how an open index times its operations and tells its observer
json_lines.py  an observer that appends one line of JSON an event
log.py         such a file read back, each line checked
sums.py        many events as one table
chart.py       that table as a picture
"""

from kbretrieval.observers.events import (
    AnswerObserved,
    ChannelObserved,
    Event,
    Observer,
    SearchObserved,
    WriteObserved,
)
from kbretrieval.observers.json_lines import JsonLinesObserver
from kbretrieval.observers.log import Logged, read_log
from kbretrieval.observers.sums import CAUSES, Sums, sums
from kbretrieval.observers.watch import Observation

__all__ = [
    "CAUSES",
    "AnswerObserved",
    "ChannelObserved",
    "Event",
    "JsonLinesObserver",
    "Logged",
    "Observation",
    "Observer",
    "SearchObserved",
    "Sums",
    "WriteObserved",
    "read_log",
    "sums",
]
