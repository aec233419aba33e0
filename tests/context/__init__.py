"""Tests of task contexts."""
