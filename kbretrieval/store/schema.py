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

Derived rows (chunks, postings, vectors, vector_codes, chunks_fts) can be made anew from `documents` alone.
"""

APPLICATION_ID = 0x6B627278  # "kbrx"
SCHEMA_VERSION = "schema/2"

FTS_TABLE = "chunks_fts"

# The ascii tokenizer keeps every non-ASCII character and folds ASCII alone, so a term of the analyzer (lower-cased,
# letters, digits, marks and `_`) passes through unchanged and in one piece (LEX-3).
CREATE_FTS = f"CREATE VIRTUAL TABLE {FTS_TABLE} USING fts5(terms, tokenize=\"ascii tokenchars '_'\")"

STATEMENTS = (
    "CREATE TABLE contract (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
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
    """CREATE TABLE chunks (
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
    "CREATE INDEX chunks_of_document ON chunks (doc_key, number)",
    """CREATE TABLE postings (
        chunk_key INTEGER PRIMARY KEY,
        length INTEGER NOT NULL,
        codes BLOB NOT NULL,
        counts BLOB NOT NULL
    ) STRICT""",
    """CREATE TABLE vectors (
        chunk_key INTEGER PRIMARY KEY,
        text_sha256 TEXT NOT NULL,
        truncated INTEGER NOT NULL,
        vector BLOB NOT NULL
    ) STRICT""",
    "CREATE INDEX vectors_of_text ON vectors (text_sha256)",
    """CREATE TABLE vector_codes (
        chunk_key INTEGER PRIMARY KEY,
        codes BLOB NOT NULL,
        residual REAL NOT NULL,
        norm REAL NOT NULL
    ) STRICT""",
    "CREATE TABLE commits (number INTEGER PRIMARY KEY, stamp BLOB NOT NULL) STRICT",
    CREATE_FTS,
    "INSERT INTO counters VALUES ('commit', 0)",
    f"PRAGMA application_id = {APPLICATION_ID}",
)
