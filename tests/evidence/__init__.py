"""Tests of the evidence room: EVD-1 to EVD-10."""
