"""Where the BGE files come from, and their digests (MOD)."""
