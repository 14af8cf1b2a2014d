"""The answer of an HTTP server that counts: what it says before, such as 103 Early Hints, is none."""

from __future__ import annotations

import http.client


class FinalResponse(http.client.HTTPResponse):
    """A response behind all interim ones (1xx). http.client passes over 100 alone; 101 is an answer of its own."""

    def begin(self) -> None:
        """Reads status lines and headers up to those of the answer."""
        super().begin()
        while 100 < self.status < 200 and self.status != http.client.SWITCHING_PROTOCOLS:
            self.headers = None  # type: ignore[assignment]  # nothing is read: the next one is
            super().begin()
