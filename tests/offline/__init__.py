"""Tests of the offline experiment: `unittest` on the standard library, so that they mean the same in every mode.

`python -m unittest discover -s tests/offline -t .` runs them without anything installed; pytest runs them too, and in
addition what stands in `pytest_only`, a folder that `unittest` does not enter because it is no package.
"""
