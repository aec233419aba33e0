"""The tests, importable as a package so that suites can share their oracles."""
