"""Numbers drawn by a secret key: the same for the same words, and telling nothing about them."""

from __future__ import annotations

import hashlib
import hmac
import random


class Dice:
    """Draws by a key.

    Args:
        key: 32 random bytes, kept in memory only.
    """

    def __init__(self, key: bytes):
        self._key = key

    def of(self, *words: str) -> random.Random:
        """A generator that depends on the key and these words alone."""
        message = "\0".join(f"{len(word)}:{word}" for word in words)
        digest = hmac.new(self._key, message.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
        return random.Random(digest)
