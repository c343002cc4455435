"""Readers of the files that messages come in."""
