"""Refusals of the file (exit status 6) and of the encoder (exit status 7)."""

from kbretrieval.errors.base import EncoderError, StoreError


class Busy(StoreError):
    """Another connection held the store until the deadline (CON-5)."""

    code = "busy"


class StorageFull(StoreError):
    """No space left for the database or its journal."""

    code = "storage_full"


class StorageIOError(StoreError):
    """The file system refused a read, write or open."""

    code = "storage_io_error"


class IndexReadOnly(StoreError):
    """A write on a store that can only be read."""

    code = "index_read_only"


class IndexClosed(StoreError):
    """A call on a closed index."""

    code = "index_closed"


class IndexForked(StoreError):
    """A call in a forked child on an index opened by its parent."""

    code = "index_forked"


class IndexReplaced(StoreError):
    """A call on an index whose file was moved, removed or replaced since it was opened; open it anew (ACL-7)."""

    code = "index_replaced"


class NotAnIndex(StoreError):
    """The file carries neither our application id nor our schema (CON-2)."""

    code = "not_an_index"


class IndexMissing(StoreError):
    """A command that makes no index found none."""

    code = "index_missing"


class IndexCorrupt(StoreError):
    """The file is ours, and damaged (CON-2)."""

    code = "index_corrupt"


class JournalModeUnsafe(StoreError):
    """The file is in WAL mode and cannot be converted now (CON-4)."""

    code = "journal_mode_unsafe"


class EncoderResultCountMismatch(EncoderError):
    """An encoder returned another number of vectors than texts (VEC-5)."""

    code = "encoder_result_count_mismatch"


class InvalidEmbeddingOutput(EncoderError):
    """A vector has the wrong shape, is not finite, or is zero (VEC-5)."""

    code = "invalid_embedding_output"


class EncoderFailed(EncoderError):
    """An encoder raised; its own text is not passed on (ERR-2)."""

    code = "encoder_failed"


class EncoderUnavailable(EncoderError):
    """The stored contract names an encoder that this call did not bring."""

    code = "encoder_unavailable"


class ModelMissing(EncoderError):
    """A model file is not there (VEC-4)."""

    code = "model_missing"


class ModelHashMismatch(EncoderError):
    """A model file is not the pinned one (VEC-4)."""

    code = "model_hash_mismatch"
