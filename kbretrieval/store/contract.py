"""The contract: everything that makes two derived indexes comparable (CON-1, CON-3)."""

from dataclasses import dataclass, fields

from kbretrieval.analysis import ANALYZER_VERSION
from kbretrieval.chunking import (
    CUTTER_VERSION,
    DEFAULT_OVERLAP,
    DEFAULT_SIZE,
    MAX_WINDOW,
    checked_window,
    unicode_version,
)
from kbretrieval.embedded import CHUNK, HEADED, METHODS
from kbretrieval.encoders.port import Encoder
from kbretrieval.encoders.quantizer import quantizer_of
from kbretrieval.encoders.terms import TermEncoder
from kbretrieval.errors import ContractChanged, IndexCorrupt, InvalidParameter
from kbretrieval.projection import PROJECTION_VERSION
from kbretrieval.store.connection import Connection
from kbretrieval.store.schema import SCHEMA_VERSION

CONTRACT = "contract"
# Neither tables of another form nor another projection can be made from what is stored.
_NEVER_ANEW = ("schema", "projection")


@dataclass(frozen=True, slots=True)
class Contract:
    """Encoder, its dimension (0: sparse), quantizer, window and overlap in code points, what is encoded, versions."""

    encoder: str
    dimension: int
    quantizer: str
    chunk_size: int
    overlap: int
    embedded: str
    analyzer: str
    cutter: str
    projection: str
    schema: str

    def to_dict(self) -> dict[str, str | int]:
        """Return the fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a caller gives at opening: None means the stored value, or the default for a new file.

    A caller that makes derived rows `anew` cares for nothing that only they depend on.
    """

    encoder: Encoder | None
    chunk_size: int | None
    overlap: int | None
    anew: bool = False
    embed: str | None = None

    def check_values(self) -> None:
        """Raise `invalid_chunk_window` or `invalid_parameter` for a given value that no file could hold."""
        if self.embed is not None and self.embed not in METHODS:
            raise InvalidParameter(f"embed: one of {', '.join(METHODS)} is required, another given")
        size = MAX_WINDOW if self.chunk_size is None else self.chunk_size
        checked_window(size, 0 if self.overlap is None else self.overlap)

    def for_new_file(self) -> Contract:
        """Return the contract of a new file; raises `invalid_chunk_window` and `invalid_parameter`."""
        size = DEFAULT_SIZE if self.chunk_size is None else self.chunk_size
        # A reader who asks for windows smaller than the default overlap means no error by leaving it out.
        overlap = (DEFAULT_OVERLAP if size > DEFAULT_OVERLAP else 0) if self.overlap is None else self.overlap
        size, overlap = checked_window(size, overlap)
        encoder, embedded = self.encoder or TermEncoder(), METHODS[self.embed or "chunk"]
        if embedded == HEADED and not encoder.dimension:
            raise InvalidParameter("embed: a dense encoder is required for headed chunks, term counts given")
        named = (encoder.identifier, encoder.dimension, quantizer_of(encoder).name)
        return Contract(*named, size, overlap, embedded, *_versions())

    def check_against(self, stored: Contract) -> None:
        """Raise `index_projection_contract_changed_rebuild_required`, naming both values, at the first difference."""
        analyzer, cutter, projection, schema = _versions()
        encoder, dimension, quantizer = (
            (self.encoder.identifier, self.encoder.dimension, quantizer_of(self.encoder).name)
            if self.encoder
            else (None, None, None)
        )
        known = stored.embedded if stored.embedded in METHODS.values() else CHUNK
        given: tuple[tuple[str, object, object], ...] = (
            ("schema", schema, stored.schema),
            ("encoder", encoder, stored.encoder),
            ("dimension", dimension, stored.dimension),
            ("quantizer", quantizer, stored.quantizer),
            ("chunk_size", self.chunk_size, stored.chunk_size),
            ("overlap", self.overlap, stored.overlap),
            ("embedded", METHODS[self.embed] if self.embed else known, stored.embedded),
            ("analyzer", analyzer, stored.analyzer),
            ("cutter", cutter, stored.cutter),
            ("projection", projection, stored.projection),
        )
        for name, wanted, value in given:
            if self.anew and name not in _NEVER_ANEW:
                continue
            if wanted is not None and wanted != value:
                raise ContractChanged(f"{name}: {value} stored, {wanted} given")


def _versions() -> tuple[str, str, str, str]:
    unicode = f"unicode-{unicode_version()}"
    return f"{ANALYZER_VERSION}+{unicode}", f"{CUTTER_VERSION}+{unicode}", PROJECTION_VERSION, SCHEMA_VERSION


def write_contract(connection: Connection, contract: Contract, table: str = CONTRACT) -> None:
    """Store a contract in an empty table; inside the transaction that makes the table or empties it."""
    connection.run_many(f"INSERT INTO {table} VALUES (?, ?)", [(k, str(v)) for k, v in contract.to_dict().items()])


def expect_contract(connection: Connection, used: Contract) -> None:
    """Raise `index_projection_contract_changed_rebuild_required`, naming both values, where another contract is stored.

    Inside the transaction that reads or writes derived rows: a migration may have switched generations since (MIG-2).
    """
    stored = read_contract(connection).to_dict()
    for name, value in used.to_dict().items():
        if stored[name] != value:
            raise ContractChanged(f"{name}: {stored[name]} stored, {value} in use")


def read_contract(connection: Connection, table: str = CONTRACT) -> Contract:
    """Return a stored contract, or raise `index_corrupt`."""
    rows = connection.run(f"SELECT name, value FROM {table} ORDER BY name")
    values = {name: value for name, value in rows if isinstance(name, str) and isinstance(value, str)}
    values.setdefault("embedded", CHUNK)  # files that were made before there was a choice
    names = {field.name for field in fields(Contract)}
    if set(values) != names:
        raise IndexCorrupt(f"the contract needs {len(names)} fields, {len(names & set(values))} are stored")
    try:
        dimension, size, overlap = int(values["dimension"]), int(values["chunk_size"]), int(values["overlap"])
    except ValueError:
        raise IndexCorrupt("a stored dimension or chunk window is no number") from None
    if not 0 <= overlap < size or dimension < 0:
        raise IndexCorrupt(f"a stored window of {size} with an overlap of {overlap}, dimension {dimension}")
    return Contract(
        values["encoder"],
        dimension,
        values["quantizer"],
        size,
        overlap,
        values["embedded"],
        values["analyzer"],
        values["cutter"],
        values["projection"],
        values["schema"],
    )
