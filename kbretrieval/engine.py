"""What the rooms of one open index share: its connection, contract, encoder and resident snapshots."""

from dataclasses import dataclass

from kbretrieval.encoders.port import Encoder
from kbretrieval.encoders.quantizer import Quantizer
from kbretrieval.snapshot.resident import Resident
from kbretrieval.store.connection import Connection
from kbretrieval.store.contract import Contract


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts of an open index, made once by `Index.open`."""

    connection: Connection
    contract: Contract
    encoder: Encoder
    quantizer: Quantizer
    resident: Resident
