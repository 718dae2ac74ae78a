"""Who issues tokens for OAUTHBEARER: signed ones, as a real issuer's, that Kafka checks."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256

AUDIENCE = "kafka"
_COORDINATE_BYTES = 32


class TokenIssuer:
    """A key, the file with its public half, and tokens that it signs."""

    def __init__(self, folder: Path) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        numbers = self._key.public_key().public_numbers()
        public = {
            "kty": "EC",
            "crv": "P-256",
            "use": "sig",
            "alg": "ES256",
            "kid": "tests",
            "x": _packed(numbers.x.to_bytes(_COORDINATE_BYTES)),
            "y": _packed(numbers.y.to_bytes(_COORDINATE_BYTES)),
        }
        self.jwks = folder / "jwks.json"
        self.jwks.write_text(json.dumps({"keys": [public]}))

    def token(self, user: str, lives_seconds: float = 3600.0) -> tuple[str, float]:
        """A token of a user, and when it ends."""
        now = time.time()
        claims = {
            "sub": user,
            "aud": AUDIENCE,
            "iss": "tests",
            "iat": int(now),
            "exp": int(now + lives_seconds),
        }
        head = _packed(_json({"alg": "ES256", "kid": "tests", "typ": "JWT"}))
        signed = f"{head}.{_packed(_json(claims))}"
        r, s = utils.decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(SHA256())))
        signature = r.to_bytes(_COORDINATE_BYTES) + s.to_bytes(_COORDINATE_BYTES)
        return f"{signed}.{_packed(signature)}", float(int(now + lives_seconds))


def _json(claims: dict[str, Any]) -> bytes:
    return json.dumps(claims).encode()


def _packed(plain: bytes) -> str:
    return base64.urlsafe_b64encode(plain).rstrip(b"=").decode()
