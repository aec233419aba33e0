"""Tests of the repository itself: its rules, its papers and its promise table."""
