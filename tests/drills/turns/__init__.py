"""Drills of handing a group over between native and Kafka consumers, with mutants of the host."""
