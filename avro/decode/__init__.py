"""Bytes to columns."""
