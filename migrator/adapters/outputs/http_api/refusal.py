"""An API's answer, judged: taken, to be asked again, or a named error with a way out."""

from __future__ import annotations

import email.utils
import http.client
import json
import socket
import ssl
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from migrator.errors import OutputError

_CHARACTERS = 200
_AGAIN = frozenset({408, 409, 421, 425, 429, *range(500, 600)} - {501, 505})
"""409: a request with this key is still under way (RFC draft of the Idempotency-Key header)."""
_TOO_LARGE = 413
_SAME = "then start again: the same batch is sent under the same key"
_REMEDIES = {
    400: f"look at what the API says about it, correct the API or --output, {_SAME}",
    401: f"correct the token or headers (--token-env, --token-file, --headers), {_SAME}",
    403: f"have the API give this token the right to post here, {_SAME}",
    404: f"correct --output (with --name, so that it stays the same output), {_SAME}",
    405: f"--output must be the address that takes POST: correct it (with --name), {_SAME}",
    413: "give a smaller --batch-bytes, or raise the API's limit, then start again: the events are batched anew",
    415: f"have the API take application/x-ndjson, one JSON event a line, {_SAME}",
    422: f"look at what the API says about it and correct the API, {_SAME}",
}


class TooLarge(OutputError):
    """The API says that a batch is too large: it surely hasn't taken it."""


@dataclass(frozen=True, slots=True)
class Request:
    """The request, as a message tells it: nothing in it is secret.

    ``secrets`` are texts that no message may repeat, also where the answer does.
    """

    url: str
    key: str
    events: int
    secrets: Collection[str] = ()

    def where(self) -> str:
        """Address without its query, which may hold a token, and the batch's key."""
        parts = urlsplit(self.url)
        return f"{urlunsplit((parts.scheme, parts.netloc, parts.path, '', ''))} (batch {self.key})"

    def shown(self, said: bytes) -> str:
        """The first characters of an answer, on one line."""
        text = said.decode("utf-8", "replace")
        for secret in self.secrets:
            text = text.replace(secret, "…")
        text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        return f"{text[:_CHARACTERS]}{'…' if len(text) > _CHARACTERS else ''}" or "(no words)"


@dataclass(frozen=True, slots=True)
class Answer:
    """A status with its words, or the reason why there is none.

    Attributes:
        body: its beginning, if it isn't ``whole``.
    """

    status: int = 0
    body: bytes = b""
    whole: bool = True
    content_type: str = ""
    location: str = ""
    retry_after: str = ""
    failure: Exception | None = None

    def wait_s(self, now: float) -> float | None:
        """Seconds that the API asks to wait; None where it doesn't."""
        text = self.retry_after.strip()
        if text.isascii() and text.isdigit():
            return float(text)
        try:
            return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - now)
        except (TypeError, ValueError):
            return None


def judged(answer: Answer, request: Request) -> OutputError | None:
    """None where the batch was taken; an error, retryable where asking again may help."""
    if answer.failure is not None:
        return _unanswered(answer.failure, request)
    said = f"status {answer.status}: {request.shown(answer.body)}"
    if 200 <= answer.status < 300:
        return _unlikely(answer, request, said)
    if 300 <= answer.status < 400:
        return OutputError(
            "the API sends somebody elsewhere, and redirects aren't followed",
            where=request.where(),
            cause=f"status {answer.status} to {request.shown(answer.location.encode())}",
            remedy="give --output the address that takes events itself, with --name and the address of before,"
            f" {_SAME}",
        )
    if answer.status in _AGAIN:
        return OutputError("the API takes no events now", where=request.where(), cause=said, retryable=True)
    refuse = TooLarge if answer.status == _TOO_LARGE else OutputError
    return refuse(
        "the API refuses a batch of events",
        where=request.where(),
        cause=said,
        remedy=_REMEDIES.get(answer.status, _REMEDIES[400]),
    )


def too_long(problem: OutputError, tries: int, passed_s: float, asked_s: float | None) -> OutputError:
    """The error for an API that took nothing for as long as it is waited for."""
    asks = f", and it asks for {asked_s:g} s more" if asked_s is not None else ""
    return OutputError(
        "the API has taken no events for too long",
        where=problem.where,
        cause=f"{problem.cause} ({tries} tries in {passed_s:.0f} s{asks})",
        remedy=f"bring the API back, or give a longer --patience, {_SAME}",
        retryable=True,
    )


def stopped(problem: OutputError) -> OutputError:
    """The error for a stop that was asked for while the API took nothing."""
    return OutputError(
        "stopped while the API took no events",
        where=problem.where,
        cause=problem.cause,
        remedy="start again: the same batch is sent under the same key",
    )


def _unanswered(failure: Exception, request: Request) -> OutputError:
    cause = request.shown(f"{type(failure).__name__}: {failure}".encode())
    if isinstance(failure, ssl.SSLCertVerificationError):
        return OutputError(
            "the API's certificate isn't believed",
            where=request.where(),
            cause=cause,
            remedy=f"give its authority's PEM file with --ca, or correct the host in --output, {_SAME}",
        )
    if isinstance(failure, ssl.SSLError) and not isinstance(failure, ssl.SSLEOFError):
        return OutputError(
            "no encrypted connection to the API can be made",
            where=request.where(),
            cause=cause,
            remedy=f"give --output http:// where the API speaks no TLS (with --name), or mend its TLS, {_SAME}",
        )
    if isinstance(failure, ValueError) and not isinstance(failure, http.client.HTTPException):
        return OutputError(
            "a request to the API can't be put into words",
            where=request.where(),
            cause=type(failure).__name__,  # its words may hold a header's value
            remedy=f"correct --output, and the headers: no line breaks, Latin-1 only; {_SAME}",
        )
    asked = (
        "the API's name has no address" if isinstance(failure, socket.gaierror) else "the API gives no answer"
    )
    return OutputError(asked, where=request.where(), cause=cause, retryable=True)


def _unlikely(answer: Answer, request: Request, said: str) -> OutputError | None:
    """Answers of success that aren't one: a proxy's page, or a count that isn't ours."""
    start = answer.body.lstrip()[:1]
    if start == b"<" or "html" in answer.content_type.lower():
        return OutputError(
            "what answers is no API: it sent a page",
            where=request.where(),
            cause=said,
            remedy=f"a proxy's or login's page: correct --output (with --name) or the token, {_SAME}",
        )
    if answer.status in (206, 207):
        return _partly(request, said)
    if start != b"{":
        return None
    try:
        accepted = json.loads(answer.body).get("accepted", request.events)
    except (ValueError, RecursionError):  # the latter for nesting beyond reason
        cut = "" if answer.whole else f", of which only the first {len(answer.body)} bytes are read"
        return OutputError(
            "the API's answer can't be read",
            where=request.where(),
            cause=f"{said}{cut}",
            remedy=f"an answer that begins as a JSON object must be one, and short: correct the API, {_SAME}",
        )
    return None if accepted == request.events else _partly(request, said)


def _partly(request: Request, said: str) -> OutputError:
    return OutputError(
        f"the API took a batch of {request.events} events in part",
        where=request.where(),
        cause=said,
        remedy=f"a batch is taken whole or not at all: correct the API, {_SAME}",
    )
