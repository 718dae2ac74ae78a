"""The bridge's Kafka side."""
