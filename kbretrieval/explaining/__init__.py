"""`explain`: for one document and one principal, four questions answered from what is stored (OBS-5; chapter 16).

Which projection version is it? May this principal read it, and why? How is a quotation found again? What makes an older
citation fail now? A maintenance view: to a caller absent, deleted and forbidden look the same (ACL-8), and here they do
not. It holds no text: coordinates, digests, orders and policy alone.
"""

from kbretrieval.explaining.answers import explain
from kbretrieval.explaining.explanation import Explanation

__all__ = ["Explanation", "explain"]
