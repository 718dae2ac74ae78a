"""Rows to bytes and back in Avro, and the registry that names the schemas."""
