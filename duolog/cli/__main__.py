"""`python -m duolog.cli` is `duolog`."""

from __future__ import annotations

from duolog.cli import main

if __name__ == "__main__":
    main()
