"""The host process: serves a log to many clients, and keeps a Kafka cluster in step with it."""
