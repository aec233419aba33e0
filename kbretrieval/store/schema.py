"""Tables of an index file.

documents   one row a document, live or tombstone; never dropped, so that an old event cannot revive it
acl         the entries of live documents, in their order
chunks      windows of live documents; keys only grow and are never reused (AUTOINCREMENT, CHK-5)
postings    per chunk: term codes (int64, ascending) with their counts (uint16), both little-endian
vectors     per chunk of a dense encoder: float32 little-endian, with the hash of the text it was computed from and
            whether that text was cut at the encoder's token limit
vector_codes  per vector: int8 codes with the norms that bound their error; a table of its own, so that opening reads
            no float32 page
chunks_fts  the FTS5 table, terms separated by blanks; its rowid is the chunk key
contract    what makes derived rows comparable (CON-1)
counters    the store-wide commit number (CON-6)
commits     the latest 65,536 commits, each with a stamp that chains the changes up to it: a reader that knows an older
            one can tell whether it is a forerunner, or whether another file was put in its place
generations the ledger of generations: which contract served since when, with which fingerprint; lines are only added.
            A file without it gets it with the first line

Derived rows (chunks, postings, vectors, vector_codes, chunks_fts) can be made anew from `documents` alone. Those of one
contract are a generation. A migration fills a second one in tables of the same form, which are there only until they
take the names of the serving ones (MIG-1):

next_chunks, next_postings, next_vectors, next_vector_codes, next_chunks_fts   the generation that is being filled
next_contract   what it will be
next_documents  which state of which document its rows were made from, and their fingerprint

The tables that served before are past_chunks, past_postings and so on, until they are dropped. FTS5 drops a table of
its own at once, so past_chunks_fts first loses what makes it one, and past_fts_data, past_fts_idx, past_fts_content and
past_fts_docsize are plain tables, to be dropped like the others.
"""

from dataclasses import dataclass

APPLICATION_ID = 0x6B627278  # "kbrx"
SCHEMA_VERSION = "schema/2"

FTS_TABLE = "chunks_fts"
STAGED_CONTRACT = "next_contract"
STAGED_DOCUMENTS = "next_documents"
GENERATIONS = "generations"


@dataclass(frozen=True, slots=True)
class Tables:
    """The names of one generation's tables; all generations have the same columns."""

    chunks: str
    postings: str
    vectors: str
    vector_codes: str
    fts: str

    def names(self) -> tuple[str, ...]:
        """Return the names, those that hang on `chunks` first."""
        return self.fts, self.vectors, self.vector_codes, self.postings, self.chunks


SERVING = Tables("chunks", "postings", "vectors", "vector_codes", FTS_TABLE)
STAGED = Tables("next_chunks", "next_postings", "next_vectors", "next_vector_codes", f"next_{FTS_TABLE}")
PAST = Tables("past_chunks", "past_postings", "past_vectors", "past_vector_codes", f"past_{FTS_TABLE}")

# FTS5 keeps a table's terms in four tables of its own; the fifth, its configuration, is small.
FTS_SHADOWS = ("data", "idx", "content", "docsize")
FTS_REMAINS = {part: f"past_fts_{part}" for part in FTS_SHADOWS}

# An index keeps its name when its table is renamed, so two generations take turns; no statement names an index.
INDEX_NAMES = (("chunks_of_document", "vectors_of_text"), ("chunks_of_document_2", "vectors_of_text_2"))


def create_fts(table: str) -> str:
    """Return the statement that makes an FTS5 table.

    The ascii tokenizer keeps every non-ASCII character and folds ASCII alone, so a term of the analyzer (lower-cased,
    letters, digits, marks and `_`) passes through unchanged and in one piece (LEX-3).
    """
    return f"CREATE VIRTUAL TABLE {table} USING fts5(terms, tokenize=\"ascii tokenchars '_'\")"


CREATE_FTS = create_fts(FTS_TABLE)


def create_generation(tables: Tables, indexes: tuple[str, str]) -> tuple[str, ...]:
    """Return the statements that make the tables of a generation, and their indexes under two free names."""
    of_document, of_text = indexes
    return (
        f"""CREATE TABLE {tables.chunks} (
        chunk_key INTEGER PRIMARY KEY AUTOINCREMENT,
        doc_key INTEGER NOT NULL,
        number INTEGER NOT NULL,
        start_point INTEGER NOT NULL,
        end_point INTEGER NOT NULL,
        text TEXT NOT NULL,
        heading TEXT NOT NULL,
        heading_path TEXT NOT NULL,
        sha256 TEXT NOT NULL
    ) STRICT""",
        f"CREATE INDEX {of_document} ON {tables.chunks} (doc_key, number)",
        f"""CREATE TABLE {tables.postings} (
        chunk_key INTEGER PRIMARY KEY,
        length INTEGER NOT NULL,
        codes BLOB NOT NULL,
        counts BLOB NOT NULL
    ) STRICT""",
        f"""CREATE TABLE {tables.vectors} (
        chunk_key INTEGER PRIMARY KEY,
        text_sha256 TEXT NOT NULL,
        truncated INTEGER NOT NULL,
        vector BLOB NOT NULL
    ) STRICT""",
        f"CREATE INDEX {of_text} ON {tables.vectors} (text_sha256)",
        f"""CREATE TABLE {tables.vector_codes} (
        chunk_key INTEGER PRIMARY KEY,
        codes BLOB NOT NULL,
        residual REAL NOT NULL,
        norm REAL NOT NULL
    ) STRICT""",
        create_fts(tables.fts),
    )


CREATE_STAGED_DOCUMENTS = f"""CREATE TABLE {STAGED_DOCUMENTS} (
    doc_key INTEGER PRIMARY KEY,
    content_commit INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    points INTEGER NOT NULL,
    chunks INTEGER NOT NULL,
    fingerprint TEXT NOT NULL
) STRICT"""

# fingerprint: empty where what served was never recorded.
CREATE_GENERATIONS = f"""CREATE TABLE IF NOT EXISTS {GENERATIONS} (
    entry INTEGER PRIMARY KEY,
    number INTEGER NOT NULL,
    contract TEXT NOT NULL,
    since INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    documents INTEGER NOT NULL,
    chunks INTEGER NOT NULL
) STRICT"""


def create_contract(table: str) -> str:
    """Return the statement that makes a table of one contract."""
    return f"CREATE TABLE {table} (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID"


STATEMENTS = (
    create_contract("contract"),
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
    """CREATE TABLE documents (
        doc_key INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant TEXT NOT NULL,
        doc_id TEXT NOT NULL,
        revision INTEGER NOT NULL,
        acl_revision INTEGER NOT NULL,
        live INTEGER NOT NULL,
        format TEXT NOT NULL,
        title TEXT NOT NULL,
        body TEXT NOT NULL,
        headings TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        source_sha256 TEXT NOT NULL,
        provenance TEXT NOT NULL,
        content_commit INTEGER NOT NULL,
        acl_commit INTEGER NOT NULL,
        UNIQUE (tenant, doc_id)
    ) STRICT""",
    "CREATE INDEX documents_changed ON documents (tenant, max(content_commit, acl_commit))",
    """CREATE TABLE acl (
        doc_key INTEGER NOT NULL,
        position INTEGER NOT NULL,
        entry TEXT NOT NULL,
        PRIMARY KEY (doc_key, position)
    ) STRICT, WITHOUT ROWID""",
    *create_generation(SERVING, INDEX_NAMES[0]),
    "CREATE TABLE commits (number INTEGER PRIMARY KEY, stamp BLOB NOT NULL) STRICT",
    CREATE_GENERATIONS,
    "INSERT INTO counters VALUES ('commit', 0)",
    f"PRAGMA application_id = {APPLICATION_ID}",
)
