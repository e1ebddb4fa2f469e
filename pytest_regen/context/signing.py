"""The one door to itsdangerous: signatures with the time at which they were made."""

import hashlib
from collections.abc import Callable

from pytest_regen.extras import needs

with needs("server", "seals"):
    from itsdangerous import BadSignature, TimestampSigner


class Signer(TimestampSigner):
    """Signs text with HMAC-SHA256 and a key derived from a secret.

    Args:
        salt: what the signatures are for.
        key: the secret.
        clock: tells the time, in seconds since 1970.
    """

    def __init__(self, salt: str, key: bytes, clock: Callable[[], float]) -> None:
        super().__init__(key, salt=salt, key_derivation="hmac", digest_method=hashlib.sha256)
        self._clock = clock

    def get_timestamp(self) -> int:
        """Return the time, in whole seconds."""
        return int(self._clock())

    def open(self, signed: str) -> tuple[str, float]:
        """Return what was signed, and when, in seconds since 1970.

        Raises:
            ValueError: the signature is not ours, or not of this text.
        """
        try:
            value, at = self.unsign(signed, return_timestamp=True)
        except BadSignature as error:
            raise ValueError(str(error)) from None
        return value.decode(), at.timestamp()
