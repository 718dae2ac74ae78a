"""What every HTTP service of Duolog has in common: where it listens, and how it ends."""
