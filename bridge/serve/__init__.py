"""The host process: owns a log, serves it, and looks after it."""
