"""The seven pictures of the notebooks, each a pure function from plain data to a matplotlib `Figure` (NB-2).

| function | kind (its word in alt text) | answers |
|---|---|---|
| `slope_chart` | 名次斜率图 | how a result's rank moves from channel to channel |
| `contribution_bars` | 堆叠条形图 | what each channel adds to a fused score |
| `window_strip` | 窗口带图 | where chunk windows lie on a text |
| `heat_map` | 热图 | a matrix of values |
| `timeline` | 时间线图 | what each reader saw at each step |
| `floor_curve` | 折线图 | how measures change along a threshold |
| `unit_ruler` | 坐标尺图 | which offsets one place has in several units |

No function reads a file, a clock or a global setting, draws on an existing figure, or shows anything: `book.show` does.
"""

from kbretrieval.book.plots.bars import contribution_bars
from kbretrieval.book.plots.floor import floor_curve
from kbretrieval.book.plots.heat import heat_map
from kbretrieval.book.plots.ruler import unit_ruler
from kbretrieval.book.plots.slope import slope_chart
from kbretrieval.book.plots.strip import window_strip
from kbretrieval.book.plots.time import timeline

__all__ = ["contribution_bars", "floor_curve", "heat_map", "slope_chart", "timeline", "unit_ruler", "window_strip"]
