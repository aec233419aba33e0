"""The index against a model of it, and against cases from public failures: what every store has to do."""
