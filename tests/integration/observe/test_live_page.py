"""The live page in a real Chromium: what it loads, hostile texts, widths, schemes, keyboard, silence, many tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from migrator.core.watched.verdict import troubles, verdict
from migrator.model.observed.listening import Listening
from migrator.model.observed.observation import Lag
from migrator.model.requests.request import RequestState
from tests.integration.observe.browser import Browser, chromium
from tests.unit.observers.crowd import DIFFERENT, FALLEN, LEFT, LONG, MARKUP, crowd, hostile
from tests.unit.observers.full_pages import BOOK, PROGRESS, SWITCHING
from tests.unit.observers.live_pages import BOUNDS, CONTROL, HERE, Run, browsed
from tests.unit.observers.troubles import BEGAN_US, TROUBLES, WELL

pytestmark = pytest.mark.integration

OWN_ROWS = "#source-tables tbody tr"
FIRST_NAMES = (
    "return [...document.querySelectorAll('tbody bdi')].slice(0, arguments[0]).map((n) => n.innerText)"
)
ORDERED = (
    "const form = document.getElementById('filter'); form.order.value = arguments[0]; form.text.value = arguments[1];"
    " form.dispatchEvent(new Event('input'))"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def contrast(browser: Browser, css: str) -> float:
    """The contrast of an element's text to the page, by the formula of WCAG."""
    colours = browser.js(
        "const node = document.querySelector(arguments[0]);"
        "return [getComputedStyle(node).color, getComputedStyle(document.body).backgroundColor]"
        ".map((colour) => colour.match(/\\d+/g).slice(0, 3).map(Number))",
        css,
    )

    def light(colour: list[int]) -> float:
        parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    low, high = sorted(map(light, colours))
    return (high + 0.05) / (low + 0.05)


def test_it_asks_nobody_else_for_anything_and_says_what_is_known(browser: Browser) -> None:
    run = Run(replace(WELL, lag=Lag(4096, 3.0, 3.0, "")))
    run.cutover, run.requests = SWITCHING, PROGRESS
    with browsed(run, CONTROL) as page:
        browser.open(page.url)
        browser.await_text("what", "the target is 3 s behind, and follows")
        assert browser.text("lag-age") == "3 s at most"
        assert browser.text("lag-far") == "4 KiB of log"
        assert browser.text("phase") == "streaming (leader)"
        steps = browser.text("cutover-steps")
        assert "fencing: done, 0.5 s" in steps
        assert "draining: now" in steps
        assert "opening: to come" in steps
        assert browser.title() == "well – shop"
        asked = browser.asked_for()
        assert {url.removeprefix(page.url) for url in asked} >= {"/", "/live.json", "/hour.json"}
        assert [url for url in asked if not url.startswith(f"{page.url}/")] == []
        assert browser.complaints() == []


def test_a_warning_is_told_with_its_moment_where_that_is_known(browser: Browser) -> None:
    warned = (("disk", "it fills; remedy: make room"), ("mirror", "it grows"))
    with browsed(Run(replace(WELL, warnings=warned, warned_us=(("disk", BEGAN_US),)))) as page:
        browser.open(page.url)
        browser.await_text("warnings-list", "it grows")
        first, second = browser.text("warnings-list").split("Do: make room")
        assert re.search(r"disk, since (\d{4}-\d\d-\d\d )?\d\d:\d\d", first)
        assert "since" not in second


def test_a_request_elsewhere_and_a_foreign_script_would_be_stopped_and_seen(browser: Browser) -> None:
    with browsed(Run()) as page:
        browser.open(page.url)
        browser.await_text("what", "nothing is wrong")
        browser.js("fetch('http://127.0.0.1:9/').catch(() => document.body.dataset.stopped = 'yes')")
        browser.await_js("return document.body.dataset.stopped === 'yes'", "the request is stopped")
        browser.js("document.body.append(Object.assign(document.createElement('img'), {src: '/x.png'}))")
        browser.await_js("return performance.now() > 0", "it goes on")
        assert any("Content Security Policy" in one for one in browser.complaints())
        refused = browser.js(
            "try { document.body.innerHTML = arguments[0]; return ''; } catch (error) { return error.name; }",
            MARKUP,
        )
        assert refused == "TypeError", "text can't be made markup by mistake"


def test_every_trouble_is_told_at_the_top_of_the_page(browser: Browser) -> None:
    run = Run()
    with browsed(run) as page:
        for one in TROUBLES:
            run.seen, run.hour = one.end()
            found = verdict(run.seen, run.hour, troubles(run.seen, run.hour, BOUNDS))
            browser.open(page.url)
            browser.await_text("what", found.what)
            assert browser.text("risk") == found.risk, one.name
            assert browser.text("remedy") == found.remedy, one.name
            assert browser.text("since").endswith(" ago"), one.name
            assert browser.text("level") == ("ACT NOW" if found.level == "act" else "LOOK"), one.name
            link = browser.js("return document.querySelector('#document a').getAttribute('href')")
            assert page.get(link)[0] == 200, one.name
            assert browser.text("announce") == f"{browser.title().partition(' – ')[0]}: {found.what}"


def test_an_unknown_lag_is_shown_as_unknown_and_never_as_a_number(browser: Browser) -> None:
    silent = Lag(None, None, 40.0, "no answer of the source for 9 s")
    with browsed(Run(replace(WELL, lag=silent, capture_lag=silent))) as page:
        browser.open(page.url)
        browser.await_text("what", "the lag is unknown")
        assert browser.text("level") == "UNKNOWN"
        assert browser.text("lag-age").startswith(
            "unknown: no answer of the source for 9 s; all of before 40 s ago"
        )
        assert browser.text("lag-far") == "unknown"


def test_hostile_names_and_values_stay_text(browser: Browser) -> None:
    run = Run(*hostile())
    with browsed(run, CONTROL) as page:
        browser.open(page.url, wide=390)
        browser.await_text("what", "the source gives no answer: <img")
        browser.await_js("return document.querySelectorAll('#map li').length === 9", "every table has a tile")
        browser.js("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
        assert (
            browser.js("return document.querySelectorAll('img, iframe, [onerror], main script').length") == 0
        )
        assert browser.title().startswith("act now – <img src=x"), "a tab's title is text as well"
        whole = str(browser.js("return document.body.innerText"))
        assert MARKUP in whole
        assert "‹U+202E›" in whole
        assert "‹U+0000›b‹U+001B›[31m" in whole
        assert not {"\u202e", "\u2066", "\u200b", "\x1b"} & set(whole), "nothing is turned round or hidden"
        assert "(10,000 characters)" in whole
        assert LONG[:2000] not in whole
        assert browser.overflow_px() <= 0
        assert browser.complaints() == []
        assert [url for url in browser.asked_for() if not url.startswith(f"{page.url}/")] == []


def test_hostile_markup_would_be_noticed(browser: Browser) -> None:
    browser.open("data:text/html,<title>safe</title><p id=what></p>")
    browser.js("document.getElementById('what').innerHTML = arguments[0]", MARKUP)
    browser.await_js("return document.title === 'owned'", "the markup does what it wants")


def test_500_tables_are_sorted_filtered_and_drawn(browser: Browser) -> None:
    with browsed(Run(*crowd(500))) as page:
        browser.open(page.url)
        browser.await_js(f"return document.querySelectorAll('{OWN_ROWS}').length === 500", "500 rows")
        assert browser.js("return document.querySelectorAll('#map li').length") == 500
        assert browser.text("filter-shown") == "1,000 of 1,000 shown"
        fallen = f"shop.t{FALLEN:03}"
        assert browser.js(FIRST_NAMES, 3) == [fallen, f"shop.t{LEFT:03}", "shop.t000"], "troubled first"
        assert "inserts fell off: at least 60 a minute" in browser.js(
            f"return document.querySelector('{OWN_ROWS}').innerText"
        )
        first = str(browser.js("return document.querySelector('#map li').innerText"))
        assert first.startswith(f"new{DIFFERENT:03}")
        assert "≠ different" in first
        assert browser.text("map-words").startswith("1 different, 499 equal; the oldest verdict is 60 s old")
        assert browser.js("return document.querySelectorAll('#source-tables svg.spark').length") == 500
        assert "499 of 500 tables" not in browser.text("what"), "it streams"
        browser.type("#filter input", "T32 fell")
        assert browser.js(FIRST_NAMES, 9) == [fallen]
        browser.type("#filter input", "new12")
        assert browser.js("return document.querySelectorAll('#map li').length") == 10
        assert browser.text("filter-shown") == "10 of 1,000 shown"
        browser.type("#filter input", "no such thing")
        assert browser.text("filter-shown") == "0 of 1,000 shown"
        browser.js(ORDERED, "changes", "t00")
        assert browser.js(FIRST_NAMES, 2) == ["shop.t001", "shop.t002"], "t000 has no inserts"
        browser.js(ORDERED, "left", "")
        assert browser.js(FIRST_NAMES, 1) == [f"shop.t{LEFT:03}"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_must_be_scrolled_sideways_in_both_schemes(browser: Browser, scheme: str) -> None:
    run = Run(*crowd(60))
    run.cutover = SWITCHING
    run.books.update(lambda book: BOOK)
    with browsed(run, CONTROL) as page:
        browser.open(page.url, wide=390, scheme=scheme)
        browser.await_js(f"return document.querySelectorAll('{OWN_ROWS}').length === 60", "60 rows")
        assert browser.overflow_px() == 0
        assert browser.js("return document.getElementById('source-tables').scrollWidth <= innerWidth")
        widths = browser.js(
            "return [...document.querySelector('tbody tr').cells].map((cell) => cell.offsetWidth)"
        )
        assert widths[0] > 300, "a row's cells stand below each other"
        background = browser.js("return getComputedStyle(document.body).backgroundColor")
        assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}[scheme]
        for css in ("#what", ".dim", "#level", "#source-tables .why", "a"):
            assert contrast(browser, css) >= 4.5, css
        browser.js(
            "document.body.append(Object.assign(document.createElement('pre'), {textContent: 'x'.repeat(99)}))"
        )
        assert browser.overflow_px() > 0, "what is too wide would be noticed"


def test_it_is_used_by_keyboard_alone(browser: Browser) -> None:
    run = Run(*crowd(40))
    run.books.update(lambda book: BOOK)
    with browsed(run, CONTROL) as page:
        browser.open(page.url)
        browser.await_js(f"return document.querySelectorAll('{OWN_ROWS}').length === 40", "40 rows")
        browser.press("\ue004")
        assert browser.focus()["text"] == "Skip to the tables"
        assert browser.js("return document.activeElement.getBoundingClientRect().left >= 0"), "it can be seen"
        browser.press("\ue007")
        browser.await_js("return location.hash === '#tables'", "it skips")
        browser.press("/")
        found = browser.focus()
        assert (found["name"], found["outlined"]) == ("text", True)
        browser.js("document.activeElement.style.outline = 'none'")
        assert not browser.focus()["outlined"], "a focus that nobody sees would be noticed"
        browser.js("document.activeElement.style.outline = ''")
        browser.press("t01/")
        assert browser.js("return document.activeElement.value") == "t01/", "a stroke within a text is one"
        browser.press("\ue00c")
        assert browser.text("filter-shown") == "80 of 80 shown"
        names = []
        browser.js("document.getElementById('filter').order.focus()")
        for _ in range(20):
            browser.press("\ue004")
            if browser.js("return document.activeElement === document.body"):
                break  # behind the last one
            found = browser.focus()
            assert found["outlined"], found
            names.append(found["text"] or found["name"])
        assert {
            "token",
            "reason",
            "pause",
            "cancel",
            "tables",
            "Dump again",
            "chunk_rows",
            "Set the pace",
        } <= set(names)


def test_an_answer_that_changes_moves_no_focus_and_is_not_read_out_again_and_again(browser: Browser) -> None:
    run = Run(replace(WELL, lag=Lag(9, 90.0, 90.0, "")))
    run.books.update(lambda book: BOOK)
    with browsed(run, CONTROL) as page:
        browser.open(page.url)
        browser.await_text("what", "90 s behind")
        said = browser.text("announce")
        browser.js("document.querySelector('#requests-list button').focus()")
        run.seen = replace(run.seen, lag=Lag(9, 95.0, 95.0, ""))
        browser.await_text("what", "95 s behind")
        assert browser.text("announce") == said
        assert browser.focus()["text"] == "pause"
        run.seen = WELL
        browser.await_text("announce", "nothing is wrong")


def test_motion_is_reduced_for_who_wants_that(browser: Browser) -> None:
    moving = "return getComputedStyle(document.querySelector('.dot')).animationName"
    with browsed(Run()) as page:
        browser.open(page.url)
        assert browser.js(moving) == "beat"
        browser.open(page.url, motion="reduce")
        assert browser.js(moving) == "none"


def test_a_process_that_gives_no_answer_makes_the_page_stale_until_it_does(browser: Browser) -> None:
    run = Run(replace(WELL, lag=Lag(9, 3.0, 3.0, "")))
    with browsed(run) as page:
        port = page.server.port
        browser.open(page.url)
        browser.await_text("what", "3 s behind")
        assert not browser.seen("stale")
    browser.await_text("stale", "STALE: this process gives no answer")
    assert "All below is as of 21:20:00 UTC" in browser.text("stale")
    assert "migrator history" in browser.text("stale")
    assert browser.title().startswith("STALE")
    assert browser.text("announce").startswith("No answer from the process")
    assert float(browser.js("return getComputedStyle(document.getElementById('verdict')).opacity")) < 1
    with browsed(run, Listening("127.0.0.1", port)):
        browser.await_js("return document.getElementById('stale').hidden", "it is answered again")
        assert browser.title() == "well – shop"


def test_a_token_is_asked_for_and_goes_into_no_address(browser: Browser) -> None:
    with browsed(Run(), replace(HERE, token="may-read")) as page:
        browser.open(page.url)
        browser.await_js("return !document.getElementById('token').hidden", "it asks for the token")
        assert "shop" not in browser.js("return document.body.innerText")
        browser.type("#token input", "wrong")
        browser.press("\ue007")
        browser.await_text("token-refused", "isn't the right one")
        browser.type("#token input", "may-read")
        browser.press("\ue007")
        browser.await_text("what", "nothing is wrong")
        assert not browser.seen("token")
        assert not any("may-read" in url for url in browser.asked_for())
        browser.js("location.reload()")
        browser.await_text("what", "nothing is wrong")
        assert browser.js("return document.cookie + JSON.stringify(localStorage)") == "{}"


def test_requests_are_made_with_the_token_and_after_a_question_where_they_end_something(
    browser: Browser,
) -> None:
    run = Run()
    run.books.update(lambda book: BOOK)

    def state() -> RequestState:
        return run.books.book.requests[0].state

    with browsed(run, CONTROL) as page:
        browser.open(page.url)
        browser.await_text("requests-list", "r1 running: shop.orders: all rows")
        browser.click("#requests-list button")
        browser.await_text("requests-answer", "Refused: give the token")
        browser.type("#control input[name=token]", "wrong")
        browser.click("#requests-list button")
        browser.await_text("requests-answer", "Refused: a token that permits requests is needed")
        assert (state(), run.acts) == (RequestState.RUNNING, [])
        browser.type("#control input[name=token]", "may-do")
        browser.type("#control input[name=reason]", "peak hour")
        browser.click("#requests-list button")
        browser.await_text("requests-answer", "Done: r1 paused")
        assert state() is RequestState.PAUSED
        assert run.acts[0][:2] == ("dump pause", "peak hour")
        browser.await_text("requests-list", "r1 paused")
        browser.click("#requests-list button:nth-child(2)")
        browser.await_text("sure-words", "End r1")
        browser.press("\ue007")
        browser.await_js("return !document.getElementById('sure').open", "No is what Enter says")
        assert state() is RequestState.PAUSED
        browser.click("#requests-list button:nth-child(2)")
        browser.click("#sure button")
        browser.await_text("requests-answer", "Done: r1 cancelled")
        browser.type("#pace input[name=delay_s]", "0.25")
        browser.click("#pace > p button")
        browser.await_text("requests-answer", "0.25 s between chunks")
        browser.type("#pace input[name=workers]", "many")
        browser.click("#pace > p button")
        browser.await_text("requests-answer", "Refused: the request can't be understood")
        browser.type("#start textarea", "orders")
        browser.click("#start button")
        browser.click("#sure button")
        browser.await_text("requests-answer", "Done: started r2 running orders")
        assert [act for act, _, _ in run.acts] == ["dump pause", "dump cancel", "dump pace", "dump start"]
        assert not any("may-do" in url for url in browser.asked_for())


def test_without_a_token_for_them_nothing_offers_requests(browser: Browser) -> None:
    with browsed(Run()) as page:
        browser.open(page.url)
        browser.await_text("requests-words", "Nothing can be asked for here")
        assert not browser.seen("start")
        assert not browser.seen("pace")
        assert json.loads(page.get("/live.json")[2])["control"] is False
