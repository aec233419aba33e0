"""One ranked list each: fts5 and isolated BM25 (chapter 5), vectors (chapter 6). All see eligible rows alone."""
