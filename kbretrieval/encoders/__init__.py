"""Text → vector (chapter 6): the port, the sparse term encoder, and the dense BGE encoder."""
