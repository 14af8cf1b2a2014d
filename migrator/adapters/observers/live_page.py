"""The live page: its text and script, the documents that it is fed with, and the requests that it makes.

The page itself holds nothing of the migration, so anybody who reaches the address may load it; everything else is
told only to who may read. It is one text that loads nothing, and its policy allows no script and no style but its
own, by their digests.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from http import HTTPStatus
from importlib.resources import files

from migrator.adapters.observers.live_document import hour_document, live_document
from migrator.errors import MigratorError, RequestError
from migrator.model.observed.live import Live
from migrator.model.requests.asked import Asked, Done, asked
from migrator.own_modules import own

JSON = "application/json; charset=utf-8"
HTML = "text/html; charset=utf-8"
PLAIN = "text/plain; charset=utf-8"
SCRIPTS = ("live_text.js", "live_draw.js", "live_tables.js", "live_requests.js", "live.js")
MOST_BYTES = 65_536
"""Size of a request's document."""
_DOCUMENT = re.compile(r"/docs/([a-z0-9-]{1,64})")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer over HTTP."""

    status: HTTPStatus
    kind: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LivePage:
    """The page of one run.

    Attributes:
        style: the style sheet that all our pages have.
        live: what is known now; called by several threads.
        ask: carries out a request; raises ``MigratorError``.
        document: the text of a document by its name; None: there is none.
    """

    style: str
    live: Callable[[], Live]
    ask: Callable[[Asked], Done]
    document: Callable[[str], str | None]

    def open_to_all(self, path: str) -> Answer | None:
        """Answers that tell nothing of the migration: the page's own text, documents; None for any other path."""
        if path == "/":
            page, policy = self._page
            return Answer(HTTPStatus.OK, HTML, page, policy)
        if path == "/favicon.ico":
            return Answer(HTTPStatus.NO_CONTENT, PLAIN, b"")
        if found := _DOCUMENT.fullmatch(path):
            text = self.document(found[1])
            if text is not None:
                return Answer(HTTPStatus.OK, PLAIN, text.encode())
        return None

    def for_readers(self, path: str, control: bool) -> Answer | None:
        """Answers about the run; None for any other path. ``control``: whether requests can be made here."""
        if path == "/live.json":
            return answer(HTTPStatus.OK, live_document(self.live(), control))
        if path == "/hour.json":
            live = self.live()
            return answer(HTTPStatus.OK, hour_document(live.seen, live.hour))
        return None

    def request(self, body: bytes, by: str) -> Answer:
        """Carries out a request of who may make it. ``by``: who that is, in words."""
        try:
            document = json.loads(body)
        except (ValueError, RecursionError) as error:  # UnicodeDecodeError is one of the former
            return refusal(HTTPStatus.BAD_REQUEST, "the request is no JSON document", str(error))
        try:
            done = self.ask(asked(document, by))
        except RequestError as error:
            return _error(HTTPStatus.CONFLICT, error)
        except MigratorError as error:
            return _error(HTTPStatus.SERVICE_UNAVAILABLE, error)
        return answer(HTTPStatus.OK, {"done": done.words, "warning": done.warning})

    @cached_property
    def _page(self) -> tuple[bytes, Mapping[str, str]]:
        here = files(own("migrator.adapters.observers")) / "data"
        style = f"{self.style}\n{(here / 'live.css').read_text('utf-8')}"
        script = '"use strict";\n' + "\n".join((here / name).read_text("utf-8") for name in SCRIPTS)
        text = (here / "live.html").read_text("utf-8")
        for mark, part in (("/* style */", style), ("/* script */", script)):
            text = text.replace(mark, part)
        return text.encode(), {"Content-Security-Policy": _policy(style, script)}


def _policy(style: str, script: str) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src 'sha256-{_digest(style)}'",
            f"script-src 'sha256-{_digest(script)}'",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _digest(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def answer(status: HTTPStatus, document: object) -> Answer:
    """A document as an answer."""
    return Answer(status, JSON, json.dumps(document, separators=(",", ":")).encode() + b"\n")


def refusal(status: HTTPStatus, what: str, cause: str = "", remedy: str = "") -> Answer:
    """An answer that says why not, and the way out."""
    return answer(status, {"error": what, "cause": cause, "remedy": remedy})


def _error(status: HTTPStatus, error: MigratorError) -> Answer:
    where = f"{error.where}: " if error.where else ""
    return refusal(status, error.what, f"{where}{error.cause}", error.remedy)
