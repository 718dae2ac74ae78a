"""What applications speak to: the host's endpoints over HTTP."""
