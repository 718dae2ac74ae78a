"""Tokens for OAUTHBEARER: where they come from, and one that is fresh whenever a client asks.

| question | file |
|---|---|
| what is a token, and what may a provider answer? | `token.py` (pure) |
| whose function gives them? | `hook.py` |
| how does an OIDC server give them? | `oidc.py` |
| who keeps one fresh, and what if none comes? | `source.py` |
| how do aiokafka and librdkafka ask? | `clients.py` |
"""

from __future__ import annotations

from duolog.bridge.kafka.tokens.hook import provider_of
from duolog.bridge.kafka.tokens.oidc import OidcServer
from duolog.bridge.kafka.tokens.source import TokenSource
from duolog.bridge.kafka.tokens.token import Provider, Token

__all__ = ["OidcServer", "Provider", "Token", "TokenSource", "provider_of"]
