"""The few requests of Kafka's protocol that the mirror makes itself, and its record batches."""
