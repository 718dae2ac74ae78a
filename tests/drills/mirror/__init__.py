"""Drills of the mirror into Kafka: killed, frozen, doubled; judged by an independent consumer."""
