"""What the rooms of one open index share: its connection, contract, encoder and resident snapshots."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from kbretrieval.encoders.port import Encoder
from kbretrieval.encoders.quantizer import Quantizer, quantizer_of
from kbretrieval.encoders.stored import encoder_for
from kbretrieval.errors import ContractChanged
from kbretrieval.snapshot.resident import Resident
from kbretrieval.store.connection import Connection
from kbretrieval.store.contract import Contract, Wanted, read_contract

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Engine:
    """The parts of an open index, made by `Index.open`, and anew when a migration has switched generations."""

    connection: Connection
    contract: Contract
    encoder: Encoder
    quantizer: Quantizer
    resident: Resident


def engine_of(connection: Connection, contract: Contract, encoder: Encoder | None) -> Engine:
    """Return the engine of a contract; without an encoder, with the one that the contract names."""
    used = encoder or encoder_for(contract.encoder, contract.dimension)
    return Engine(connection, contract, used, quantizer_of(used), Resident(contract))


class Serving:
    """The engine of the generation that serves, as far as this index has seen (MIG-2).

    A room that finds another contract in its transaction has done nothing yet. An index that was opened without naming
    encoder or window follows the store, as at opening; one that named them is refused, with both values.
    """

    def __init__(self, connection: Connection, wanted: Wanted, contract: Contract) -> None:
        self._wanted = wanted
        self.engine = engine_of(connection, contract, wanted.encoder)

    def call(self, work: Callable[[Engine], Made]) -> Made:
        """Return what a room makes of the engine, called anew where a migration came in between.

        Raises `index_projection_contract_changed_rebuild_required`, where the stored contract is not one that was asked
        for.
        """
        while True:
            engine = self.engine
            try:
                return work(engine)
            except ContractChanged:
                if not self._follows(engine):
                    raise

    def _follows(self, engine: Engine) -> bool:
        """Take on the stored contract; False where it is the engine's own."""
        with engine.connection.read():
            stored = read_contract(engine.connection)
        if stored == engine.contract:
            return False
        self._wanted.check_against(stored)
        self.engine = engine_of(engine.connection, stored, self._wanted.encoder)
        engine.resident.close()
        return True
