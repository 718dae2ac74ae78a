"""What only Duolog itself asks of a host: the protocol of `reach/`, spoken from the other side.

An application includes it:

    app.include_router(internal_router(log, local=LocalCallers(log.log_id, log.secret())))
"""

from __future__ import annotations

from duolog.bridge.internal.router import internal_router

__all__ = ["internal_router"]
