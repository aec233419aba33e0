"""Evidence: files that let somebody who does not trust us check one claim, offline.

Everything here runs on the standard library alone. `Claim` writes, `verify_folder` checks,
`check_text` binds numbers in prose, `python -m kbretrieval.evidence verify DIR` does it from a shell.

Example:
    >>> from kbretrieval.evidence import Claim, verify_folder
    >>> import tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> with Claim("ranks-equal", "两次检索的名次相同。", argv=("python", "-m", "kbretrieval"), folder=folder) as claim:
    ...     claim.row(query="q01", first=["travel"], second=["travel"])
    ...     claim.equal("q01", ["travel"], sorted({"travel"}))
    >>> verify_folder(folder).exit_code
    0
"""

from kbretrieval.evidence.errors import EvidenceError
from kbretrieval.evidence.literals import literal_outcomes
from kbretrieval.evidence.prose import Mismatch, check_text, fill_text, unbound_numbers
from kbretrieval.evidence.verify import Finding, Report, verify_folder
from kbretrieval.evidence.writer import Claim

__all__ = [
    "Claim",
    "EvidenceError",
    "Finding",
    "Mismatch",
    "Report",
    "check_text",
    "fill_text",
    "literal_outcomes",
    "unbound_numbers",
    "verify_folder",
]
