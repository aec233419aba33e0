"""How a reader's own documents are indexed and searched where nobody says otherwise (SYN-10, QUA-2)."""

from kbretrieval.encoders.bge import IDENTIFIER
from kbretrieval.options import SearchOptions
from kbretrieval.store.contract import Contract

CHUNK_SIZE = 220
OVERLAP = 40
OWN_DOCUMENTS = SearchOptions(lexical="isolated", fusion="convex", lexical_share=0.15, rerank="none")
"""The one fusion of QUA-2: chosen with the real model on two public sets, so it is for indexes of that model."""


def search_options(contract: Contract) -> SearchOptions:
    """Return the options with which commands search an index: those of QUA-2 for the real model, else the API's own.

    Term counts are no second opinion on the words of a query; nothing was measured that would prefer them to RRF.

    Example:
        >>> OWN_DOCUMENTS.fusion
        'convex'
    """
    return OWN_DOCUMENTS if contract.encoder == IDENTIFIER else SearchOptions()
