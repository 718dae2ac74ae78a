"""Benchmarks: `python -m bench [names]`. Each measures Duolog beside a reference, in one run."""
