"""Watchers beside a run: the lag of its lines and hints; metrics and health where they are wanted."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

from migrator import __version__
from migrator.adapters.hooks.events import LIMIT_S, told_of
from migrator.adapters.observers.live_page import LivePage
from migrator.adapters.observers.run_log import RunLog, document
from migrator.adapters.observers.server import ObserverServer
from migrator.adapters.observers.telemetry.asked import TRACES, Asked, asked
from migrator.adapters.observers.telemetry.sender import Telemetry, installed
from migrator.config.project import Settings
from migrator.errors import MigratorError
from migrator.model.hint import Hint
from migrator.model.observed.happening import Happening
from migrator.model.observed.listening import Listening
from migrator.model.observed.observation import Ended
from migrator.run.commands.asked import Desk, Start
from migrator.run.failure import Stopping
from migrator.run.observe.journal import Journal
from migrator.run.observe.lag_watch import LagWatch
from migrator.run.observe.observer import Observer
from migrator.run.observe.unbroken import unbroken
from migrator.run.progress import Progress
from migrator.wiring.coordination import hints_for_once, requests
from migrator.wiring.observed.sights import sights
from migrator.wiring.observed.status import note_end, unit_of
from migrator.wiring.source import source_parts
from migrator.wiring.target import acts
from verify.report.page import style


@dataclass(frozen=True, slots=True)
class Behind:
    """The parts that stand behind the live page beside the run itself.

    Attributes:
        start: files a dump request.
        document: the text of a document by its name; None: there is none.
    """

    start: Start
    document: Callable[[str], str | None]


@contextmanager
def watched(
    settings: Settings, progress: Progress, behind: Behind, listen: str = "", log_format: str = ""
) -> Iterator[Listening | None]:
    """Watches within it, in threads that nothing of the run waits for, and leaves behind how it ended.

    Yields where it is listened, the port being the one that was taken; None: nowhere.

    Args:
        settings: the project's.
        progress: of the run.
        behind: what the live page needs besides.
        listen: an address in place of the settings'; empty: that of the settings.
        log_format: likewise, of the log of events.

    Raises what is raised within it, and ``ConfigError`` where metrics can't be served at the address that is set.
    """
    where = settings.observe.at(listen) if listen else settings.observe.there
    stopping, before = Stopping(), _before(settings)
    if before is not None and before.applied is not None:
        progress.remember(before.applied)
    ended, sent = Ended(0), asked(os.environ, installed)
    with ExitStack() as stack:
        observer = _observer(settings, progress, before)
        if where is not None:
            where = replace(where, port=stack.enter_context(_served(settings, observer, behind, where)).port)
        if where is not None or sent.exporters:
            observer.start(stopping)
        telemetry = _sent(settings, sent, observer, progress)
        stack.callback(telemetry.close)
        ends = _recorded(settings, progress, log_format, telemetry, stopping)
        _, ports = source_parts(settings)
        if (meter := ports([]).meter) is not None:
            lag = partial(LagWatch(meter, progress).run, stopping)
            stopping.thread("lag", unbroken("lag", lag, progress, stopping))
        try:
            yield where
        except MigratorError as error:
            ended = Ended(0, type(error).__name__, str(error))
            raise
        finally:
            ended = replace(ended, at_us=time.time_ns() // 1000)
            note_end(settings, progress.snapshot().led, ended)
            stopping.request()
            ends(ended)


def _recorded(
    settings: Settings, progress: Progress, log_format: str, telemetry: Telemetry, stopping: Stopping
) -> Callable[[Ended], None]:
    """Begins the log of events, and the hook where there is one; returns what ends both with the run's last event."""
    events, telling = settings.observe.events, Stopping()
    log = RunLog(settings.state, log_format or events.log_format, events.log_bytes, settings.name)

    def tell(at_us: int, one: Happening) -> str:
        return told_of(events.on_event, document(settings.name, at_us, one))

    def note(at_us: int, one: Happening) -> None:
        log(at_us, one)
        telemetry.event(at_us, one)

    hooked = bool(events.on_event)
    journal = Journal(progress, sights(settings).judged, events.max_lag_s, note, tell if hooked else None)
    looks = stopping.thread(
        "journal", unbroken("journal", partial(journal.run, stopping), progress, stopping)
    )
    calls = telling.thread("hook", lambda: journal.serve(telling)) if hooked else None

    def ends(ended: Ended) -> None:
        looks.join(timeout=5)
        journal.ended(ended)
        telling.request()
        if calls is not None:
            calls.join(timeout=LIMIT_S)

    return ends


def _sent(settings: Settings, sent: Asked, observer: Observer, progress: Progress) -> Telemetry:
    """Begins to send what OpenTelemetry's variables ask for; without them there is nothing in it."""
    about = {
        "service.name": "migrator",
        "service.version": __version__,
        "service.instance.id": f"{platform.node()}:{os.getpid()}",
        "migrator.migration": settings.name,
    }

    def note(what: str, words: str) -> None:
        progress.warn(what, *filter(None, [words]))

    telemetry = Telemetry(sent, about, observer.observation, note)
    if sent.of(TRACES):
        progress.watch_steps(telemetry.step)
    return telemetry


def _before(settings: Settings) -> Hint | None:
    with (
        suppress(MigratorError),
        hints_for_once(settings) as place,
    ):  # else this run knows nothing of the one before
        return place.read()
    return None


def _observer(settings: Settings, progress: Progress, before: Hint | None) -> Observer:
    ended = None if before is None else before.ended
    return Observer(
        settings.name, unit_of(settings), progress, sights(settings), ended, settings.observe.bounds
    )


def _served(settings: Settings, observer: Observer, behind: Behind, where: Listening) -> ObserverServer:
    desk = Desk(
        partial(requests, settings),
        behind.start,
        lambda act, reason, detail: acts(settings).add(act, reason, detail),
    )
    return ObserverServer(
        where, observer.observation, LivePage(style(), observer.live, desk, behind.document)
    )
