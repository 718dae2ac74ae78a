"""Who asks on this machine: whoever can read the secret in the log's folder."""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field

from duolog.reach.protocol import local_token, new_nonce, nonce_of, proof_of


@dataclass(frozen=True, slots=True)
class LocalCallers:
    """Proves to clients of this machine that a host knows the secret, and knows them again.

    Nothing is kept of a client. Its token holds the nonce that it began with, and is good for as
    long as this host runs.
    """

    log_id: str
    secret: str = field(repr=False)
    nonce: str = field(default_factory=new_nonce)

    def proof(self, client_nonce: str, address: str) -> str:
        """What shows a client that this is the host which is announced at the address."""
        return proof_of(self.secret, client_nonce, self.nonce, self.log_id, address)

    def knows(self, token: str) -> bool:
        """Whether who brings this token knows the secret."""
        client_nonce = nonce_of(token)
        if client_nonce is None:
            return False
        expected = local_token(self.secret, client_nonce, self.nonce, self.log_id)
        return hmac.compare_digest(token.encode(), expected.encode())
