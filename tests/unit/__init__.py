"""Tests of single rooms and of the index in one process."""
