"""`explain`: for one document and one principal, four questions answered from what is stored (OBS-5; chapter 16).

Which projection version is it? May this principal read it, and why? How is a quotation found again? What makes an older
citation fail now? A maintenance view: to a caller absent, deleted and forbidden look the same (ACL-8), and here they do
not. It holds no text: coordinates, digests, orders and policy alone.

Example:
    >>> import tempfile, pathlib
    >>> from kbretrieval import Context, Index
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Index.open(pathlib.Path(folder.name) / "kb.sqlite") as index:
    ...     _ = index.upsert("acme", "travel", 1, "text", "住宿每晚限额500元。", ["group:hr"])
    ...     found = index.explain("travel", Context("acme", "carol", ("hr",)))
    ...     found.access.granted_by, found.access.acl_revision, len(found.source.chunks)
    ('group:hr', 1, 1)
    >>> folder.cleanup()
"""

from kbretrieval.explaining.answers import explain
from kbretrieval.explaining.explanation import Explanation

__all__ = ["Explanation", "explain"]
