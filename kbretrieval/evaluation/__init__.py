"""Measuring retrieval (chapters 13–15): the book's fixtures, metrics, reports."""
