"""What the host counts and measures, as Prometheus reads it."""
