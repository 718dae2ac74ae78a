"""Spark in and out of the log, exactly once."""
