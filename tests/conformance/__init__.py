"""The index against a model of it: what every store has to do, however it is built."""
