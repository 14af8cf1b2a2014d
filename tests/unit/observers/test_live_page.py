"""The live page over HTTP: what is told to whom, a strict policy, and requests only by a token that permits them."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from migrator.adapters.observers.live_document import DOCUMENTS, document_of
from migrator.adapters.observers.live_page import MOST_BYTES
from migrator.cli.docs import documents
from migrator.errors import ConnectionFailed, TargetError
from migrator.model.requests.request import RequestState
from tests.unit.observers.live_pages import CONTROL, HERE, Browsed, Run, browsed
from tests.unit.observers.troubles import TROUBLES
from tests.unit.product_modules import SOURCES

GUARDED = replace(HERE, token="may-read", control="may-do")
PAUSE = {"act": "pause", "request": "r1"}


@pytest.fixture
def page() -> Iterator[Browsed]:
    with browsed(Run(), CONTROL) as found:
        yield found


@pytest.fixture
def guarded() -> Iterator[Browsed]:
    with browsed(Run(), GUARDED) as found:
        yield found


class Tags(HTMLParser):
    """What a page has as tags, attributes, and texts of scripts and styles."""

    def __init__(self, text: str):
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.inline: dict[str, str] = {}
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data: str) -> None:
        if self._open in ("script", "style"):
            self.inline[self._open] = self.inline.get(self._open, "") + data

    def handle_endtag(self, tag: str) -> None:
        self._open = ""


def test_the_page_is_one_text_that_loads_nothing_and_handles_nothing_inline(page: Browsed) -> None:
    status, headers, text = page.get("/")
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    tags = Tags(text)
    for tag, attributes in tags.found:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base"), tag
        assert not {"src", "style", "srcset", "action"} & attributes.keys(), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        assert (attributes.get("href") or "#").startswith("#"), attributes
    assert sum(tag == "script" for tag, _ in tags.found) == 1
    assert "/* script */" not in text
    assert "/* style */" not in text


def test_its_policy_allows_its_own_script_and_style_and_nothing_else(page: Browsed) -> None:
    _, headers, text = page.get("/")
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    inline = Tags(text).inline
    for name in ("script", "style"):
        digest = b64encode(sha256(inline[name].encode()).digest()).decode()
        assert policy[f"{name}-src"] == f"'sha256-{digest}'"
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] == "DENY"


def test_the_script_never_makes_markup_of_text(page: Browsed) -> None:
    script = Tags(page.get("/")[2]).inline["script"]
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\.on[a-z]+ ?="
    assert re.findall(forbidden, script) == []
    assert re.findall(forbidden, "node.innerHTML = x; node.onclick = y") == ["innerHTML", ".onclick ="]


def test_the_style_is_that_of_our_reports(page: Browsed) -> None:
    style = Tags(page.get("/")[2]).inline["style"]
    root = Path(__file__).parents[3]
    assert style.startswith((root / "verify" / "data" / "page.css").read_text("utf-8"))
    own = (root / "migrator" / "adapters" / "observers" / "data" / "live.css").read_text("utf-8")
    assert re.findall(r"--[a-z]+:|prefers-color-scheme", own) == [], "colours are in one place"


def test_documents_that_remedies_name_are_told_as_text(page: Browsed) -> None:
    status, headers, text = page.get("/docs/live-page")
    assert (status, headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert text.startswith("# The live page")
    assert page.get("/docs/none")[0] == 404
    assert page.get("/docs/../pyproject.toml")[0] == 404
    assert page.get("/docs/%2e%2e")[0] == 404


def test_every_warning_of_a_run_has_a_document() -> None:
    assert set(DOCUMENTS.values()) <= documents().keys()
    abouts = {
        about
        for name, source in SOURCES.items()
        if name.startswith("migrator/")
        for about in re.findall(r'\.warn\(\s*f?"([^"{]+)"', source)
    }
    assert len(abouts) > 5, "warnings are not found any more"
    assert abouts - DOCUMENTS.keys() == set()
    assert document_of("of another version") in documents()


def test_what_is_known_is_told_as_documents_that_no_cache_keeps(page: Browsed) -> None:
    for path in ("/live.json", "/hour.json"):
        status, headers, text = page.get(f"{path}?x=1")
        assert (status, headers["Cache-Control"]) == (200, "no-store")
        assert json.loads(text)["format"] == 1
    assert json.loads(page.get("/live.json")[2])["control"] is True


def test_a_leader_whose_spark_stands_still_is_not_ready(page: Browsed) -> None:
    """Servers answer and it leads, yet nothing of its work is done: who sends it work must know."""
    assert page.get("/readyz")[0] == 200
    page.run.seen, page.run.hour = next(one for one in TROUBLES if one.name == "NothingApplied").end()
    status, _, text = page.get("/readyz")
    assert (status, "no batch is applied" in json.loads(text)["why"]) == (503, True)
    assert page.get("/healthz")[0] == 200
    page.run.seen, page.run.hour = next(one for one in TROUBLES if one.name == "HotTable").end()
    assert page.get("/readyz")[0] == 200, "it falls behind, and works"


def test_a_browser_that_was_led_here_by_a_foreign_name_learns_nothing(page: Browsed) -> None:
    for host in ("127.0.0.1:1", "localhost:7000", "[::1]:9464", "LOCALHOST"):
        assert page.get("/live.json", Host=host)[0] == 200, host
    for host in ("evil.example:9464", "127.0.0.1.evil.example", "localhost.evil.example", ""):
        status, _, text = page.get("/live.json", Host=host)
        assert (status, "shop" in text) == (421, False), host
        assert "127.0.0.1" in json.loads(text)["remedy"]
        status, _, text = page.get("/metrics", Host=host)
        assert (status, "migrator_lag" in text) == (421, False), (
            f"{host}: metrics name tables and errors, too"
        )
    assert page.get("/healthz", Host="evil.example")[0] == 200, "a probe by another name goes on"
    assert "migrator_lag" in page.get("/metrics")[2], "the control"


def test_a_request_that_was_led_here_by_a_foreign_name_does_nothing(page: Browsed) -> None:
    start = {"act": "start", "tables": []}
    for host in ("evil.example:9464", "127.0.0.1.evil.example", ""):
        status, answer = page.post(start, "may-do", Host=host)
        assert (status, "127.0.0.1" in answer["remedy"]) == (421, True), host
    assert page.run.books.book.requests == ()
    assert page.post(start, "may-do", Host="localhost:7000")[0] == 200, "the control"


def test_with_a_token_any_name_does_and_the_page_itself_needs_none(guarded: Browsed) -> None:
    assert guarded.get("/")[0] == 200
    assert "shop" not in guarded.get("/")[2], "the page holds nothing of the migration"
    for path in ("/live.json", "/hour.json", "/metrics", "/none"):
        assert guarded.get(path)[0] == 401, path
        assert guarded.get(path, Authorization="Bearer may-red")[0] == 401, path
    assert guarded.get("/live.json", Authorization="Bearer may-read", Host="db-tools:9464")[0] == 200
    assert guarded.get("/live.json", Authorization="Bearer may-do")[0] == 200, "who may ask may read"


def test_a_request_needs_the_token_that_permits_it(guarded: Browsed) -> None:
    store = guarded.run.books
    assert guarded.post({"act": "start", "tables": []}, "may-do")[0] == 200
    before = store.book
    assert guarded.post(PAUSE)[0] == 401
    assert guarded.post(PAUSE, "wrong")[0] == 401
    status, answer = guarded.post(PAUSE, "may-read")
    assert (status, "lets read" in answer["error"]) == (403, True)
    for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
        status, headers, _ = guarded.asked(method, "/requests", None, {"Authorization": "Bearer may-do"})
        assert status in (405, 501), method
        assert "Access-Control-Allow-Origin" not in headers
    assert store.book == before, "nothing was done"
    assert guarded.post(PAUSE, "may-do")[0] == 200
    assert store.book.requests[0].state is RequestState.PAUSED


def test_without_such_a_token_nothing_can_be_asked_for() -> None:
    with browsed(Run(), HERE) as page:
        for token in ("", "None", "may-do"):
            status, answer = page.post({"act": "start", "tables": []}, token)
            assert (status, answer["error"]) == (403, "nothing can be asked for here")
            assert "control_token" in answer["remedy"]
        assert page.run.books.book.requests == ()
        assert json.loads(page.get("/live.json")[2])["control"] is False


def test_a_request_is_carried_out_and_kept_with_who_asked_and_why(page: Browsed) -> None:
    status, answer = page.post({"act": "start", "tables": ["orders"], "reason": "was damaged"}, "may-do")
    assert (status, answer) == (200, {"done": "started r1  running  orders: all rows", "warning": ""})
    assert page.run.acts == [
        (
            "dump start",
            "was damaged",
            "started r1  running  orders: all rows (on the live page, from 127.0.0.1)",
        )
    ]
    for act, state in (
        ("pause", "paused"),
        ("resume", "running"),
        ("cancel", "cancelled"),
        ("restart", "running"),
    ):
        assert page.post({"act": act, "request": "r1"}, "may-do")[0] == 200
        assert json.loads(page.get("/live.json")[2])["requests"][0]["state"] == state
    assert page.post({"act": "pace", "pace": {"delay_s": 0.5, "workers": 2}}, "may-do")[0] == 200
    assert (page.run.books.book.pace.delay_s, page.run.books.book.pace.workers) == (0.5, 2)
    assert [act for act, _, _ in page.run.acts][1:] == [
        "dump pause", "dump resume", "dump cancel", "dump restart", "dump pace",
    ]  # fmt: skip


def test_what_the_book_refuses_is_refused_with_its_words(page: Browsed) -> None:
    status, answer = page.post({"act": "pause", "request": "r7"}, "may-do")
    assert (status, answer["error"]) == (409, "there is no dump request 'r7'")
    assert answer["remedy"] == "`migrator dump list` shows all of them"
    status, answer = page.post({"act": "pace", "pace": {"share": 2}}, "may-do")
    assert (status, "from 0 to 1" in answer["cause"]) == (409, True)
    assert page.run.acts == []


def test_what_the_history_lacks_is_said_and_what_cannot_be_reached_is_no_fault_of_the_request(
    page: Browsed,
) -> None:
    page.run.unkept = TargetError("the history can't be written")
    status, answer = page.post({"act": "start", "tables": []}, "may-do")
    assert status == 200
    assert answer["warning"] == "the history lacks this: the history can't be written"

    def gone(_: object) -> None:
        raise ConnectionFailed("ZooKeeper can't be reached", remedy="start it")

    page.run.books.update = gone  # type: ignore[assignment]
    status, answer = page.post(PAUSE, "may-do")
    assert (status, answer["error"], answer["remedy"]) == (503, "ZooKeeper can't be reached", "start it")


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ([], ""),
        ({}, "act"),
        ({"act": "stop"}, "act"),
        ({"act": ["pause"]}, "act"),
        ({"act": "pause"}, "request"),
        ({"act": "pause", "request": 1}, "request"),
        ({"act": "pause", "request": "r1", "tables": []}, "tables"),
        ({"act": "start", "tables": "orders"}, "tables"),
        ({"act": "start", "tables": [1]}, "tables"),
        ({"act": "start", "tables": [], "reason": "x" * 501}, "reason"),
        ({"act": "pace", "pace": {}}, "pace"),
        ({"act": "pace", "pace": {"speed": 1}}, "pace.speed"),
        ({"act": "pace", "pace": {"workers": 1.5}}, "pace.workers"),
        ({"act": "pace", "pace": {"workers": True}}, "pace.workers"),
        ({"act": "pace", "pace": {"delay_s": "1"}}, "pace.delay_s"),
    ],
)
def test_what_is_no_request_is_refused_by_field(page: Browsed, document: object, where: str) -> None:
    status, answer = page.post(document, "may-do")
    assert (status, answer["error"]) == (409, "the request can't be understood")
    assert answer["cause"].startswith(f"{where}: " if where else "it is no JSON object")
    assert "live-page" in answer["remedy"]
    assert (page.run.acts, page.run.books.book.started) == ([], 0)


def test_requests_have_a_form_and_a_size(page: Browsed) -> None:
    assert page.post(b"{", "may-do")[0] == 400
    assert page.post(b"\xff", "may-do")[0] == 400
    assert page.post(b"[" * 4000, "may-do")[0] == 400, "nested beyond reason"
    assert page.post(PAUSE, "may-do", **{"Content-Type": "text/plain"})[0] == 415
    assert page.post(b" " * (MOST_BYTES + 1), "may-do")[0] == 413
    assert page.post({"act": "pace", "pace": {"delay_s": float("nan")}}, "may-do")[0] == 409
    assert page.asked("POST", "/live.json", b"{}", {})[0] == 404
