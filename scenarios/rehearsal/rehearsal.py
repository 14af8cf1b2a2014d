"""The order of a rehearsal: servers, schemas, rows, dump, stream, cut-overs under writes, verdicts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from migrator.config import project as configuration
from migrator.config.project import Settings
from migrator.config.way_back import way_back
from migrator.embedded.process import scratch_directory
from migrator.errors import ConfigError, MigratorError
from migrator.wiring import parts as wiring
from migrator.wiring.target import peek
from scenarios.database import Database
from scenarios.rehearsal import copied, generated, needs, schema, sides
from scenarios.rehearsal.account import Account, Step
from scenarios.rehearsal.clients import Clients, Side
from scenarios.rehearsal.filled import Target, parsed
from scenarios.rehearsal.kills import killed
from scenarios.rehearsal.ladder import SideRows
from scenarios.rehearsal.scout import Scout, Scouted
from scenarios.rehearsal.tables import linked
from scenarios.rehearsal.tool import PATIENCE_S, Said, Tool

_SHOWN = 12
_LOOK_S = 0.05
Filled = Mapping[str, Mapping[str, Target]]


@dataclass(frozen=True)
class Order:
    """The task: what is to be rehearsed, and how long.

    Attributes:
        config: the user's project.
        old_schema, new_schema: SQL files; without the second the project's revisions make the new schema.
        rows: rows to make for each old table where the file brings none.
        clients: how many write.
        seconds: how long they write between two steps.
        kills: whether the leader is killed at every step of a switch.
    """

    config: Path
    old_schema: Path
    new_schema: Path | None
    rows: int = 100
    clients: int = 2
    seconds: float = 3.0
    kills: bool = False


class Rehearsal:
    """One rehearsal. ``account`` is complete as far as it came.

    Args:
        order: what is to be rehearsed.
        say: told each step's name when it begins, and what came of it.
    """

    def __init__(self, order: Order, say: Callable[[str], None]):
        self._order, self._say = order, say
        self.account = Account()

    def run(self) -> None:
        """All of it. Raises ``MigratorError`` for what ends it early; everything is stopped in any case."""
        project = copied.wanted(self._order.config)
        for file in filter(None, (self._order.old_schema, self._order.new_schema)):
            if not file.is_file():
                raise ConfigError(
                    "the SQL file can't be read",
                    where=str(file),
                    cause="there is no such file",
                    remedy="give a dump as plain SQL (`pg_dump -s`, `mysqldump --no-data`), or correct the path",
                )
        with ExitStack() as stack:
            folder = stack.enter_context(scratch_directory("migrator-rehearsal-"))
            ends = self._servers(stack, folder, project)
            settings, tool = self._project(folder, project, ends)
            stack.callback(tool.leader.close)
            self._migrated(settings, tool, ends, bool(project.reverse))

    def _step(self, name: str) -> _Shown:
        return _Shown(self.account, name, self._say)

    def _servers(self, stack: ExitStack, folder: Path, project: copied.Wanted) -> dict[str, Database]:
        order = self._order
        kinds = " and ".join(f"{project.kind(side)} ({side})" for side in ("old", "new"))
        with self._step(f"servers: {kinds}"):
            ends = {side: sides.started(stack, folder, project, side) for side in ("old", "new")}
            sides.make_logins(project, ends)
        with self._step(f"old schema: {order.old_schema.name}") as step:
            self._load(step, ends["old"], order.old_schema)
        if order.new_schema is not None:
            with self._step(f"new schema: {order.new_schema.name}") as step:
                self._load(step, ends["new"], order.new_schema)
        return ends

    @staticmethod
    def _load(step: Step, database: Database, file: Path) -> None:
        found = sides.read(file, database)
        sides.loaded(database, found, file)
        step.lines += [f"left out: {times} x {what}" for what, times in found.left_out]

    def _project(
        self, folder: Path, project: copied.Wanted, ends: dict[str, Database]
    ) -> tuple[Settings, Tool]:
        ways = sides.accepted_ways(project, ends) if project.reverse else []
        config, said = copied.copy(project, folder / "project", ends, self._order.kills, ways)
        self.account.named += said
        settings = configuration.load(config)
        tool = Tool(config, folder / "run.log")
        found = self._order.new_schema is not None
        with self._step(f"new schema: the project's revisions{' count as run' if found else ''}"):
            admin = replace(settings.target, user=ends["new"].user, password=None)
            wiring.upgrade_user_target(replace(settings, target=admin), found=found)
        old = schema.tables(ends["old"])
        if generated.empty(ends["old"], old):
            with self._step(f"rows: {self._order.rows} for each old table, made up") as step:
                filled = generated.fill(ends["old"], old, self._order.rows)
                step.lines.append(", ".join(f"{name} {count}" for name, count in filled.rows.items()))
                for name, why in filled.fewer.items():
                    step.lines.append(f"{name}: only {filled.rows[name]} row(s) were taken: {why}")
        with self._step("logins with the printed grants"):
            scripts = sides.grant_printed(settings, ends, both_ways=bool(project.reverse))
        needs.rights(self.account, scripts, settings)
        return settings, tool

    def _migrated(self, settings: Settings, tool: Tool, ends: dict[str, Database], back: bool) -> None:
        with self._step("what both mappings fill"):
            done = tool.command(module="scenarios.rehearsal.filled", apart=True)
            if done.code:
                raise MigratorError(
                    "the mapping can't be used with these schemas",
                    where=str(self._order.config),
                    cause=done.text.strip(),
                    remedy="correct what is named, then rehearse again",
                )
            filled = parsed(done.text)
        self._prepare(settings, ends, filled, back)
        with self._step("check") as step:
            done = tool.command("check")
            step.lines += done.text.splitlines()
            if done.code:
                raise MigratorError(
                    "`migrator check` refuses",
                    cause=done.text.strip(),
                    remedy="correct what is named, then rehearse again",
                )
        with self._step("dump") as step:
            tool.lead()
            tool.wait(lambda: _dumped(settings), "the dump's end")
            needs.disk(self.account, settings, "dump")
        found, both = self._scouted(settings, tool, ends, filled, back)
        with Clients(found.ladders, both) as clients:
            self._streamed(settings, tool, clients, filled, found)
            if back:
                self._there_and_back(settings, tool, clients)
            self._ended(settings, tool, clients, filled, found, back)
        needs.settings_of_servers(self.account, ends)

    def _prepare(self, settings: Settings, ends: dict[str, Database], filled: Filled, back: bool) -> None:
        old, new = schema.tables(ends["old"]), schema.tables(ends["new"])
        read = {name for one in filled["there"].values() for name in one.sources}
        if back:
            written = {"old": {*read, *filled["back"]}, "new": set(filled["there"])}
            written["new"] |= {name for one in filled["back"].values() for name in one.sources}
            needs.fences(self.account, sides.let_fence(settings, ends, written))
        images = sides.whole_images(ends["old"], [old[name] for name in sorted(read) if name in old])
        if back:
            sources = {name for one in filled["back"].values() for name in one.sources}
            images += sides.whole_images(ends["new"], [new[name] for name in sorted(sources) if name in new])
        needs.images(self.account, images)

    def _scouted(
        self, settings: Settings, tool: Tool, ends: dict[str, Database], filled: Filled, back: bool
    ) -> tuple[Scouted, dict[str, Side]]:
        old, new = schema.tables(ends["old"]), schema.tables(ends["new"])
        there, home = filled["there"], filled.get("back", {})
        links = [link for one in there.values() for link in one.links]
        read = list(dict.fromkeys(name for one in there.values() for name in one.sources))
        written = {name: linked(old[name], links) for name in read if name in old}
        everything = {name: one.written() for name, one in old.items()}
        carried = {name: home[name].columns if name in home else () for name in old} if back else everything
        roles = settings.cutover
        assert roles is not None
        rows = {
            "old": SideRows(
                ends["old"].kind == "postgresql",
                written,
                {name: one.key for name, one in written.items()},
                carried,
            ),
            "new": SideRows(
                ends["new"].kind == "postgresql",
                {name: new[name] for name in there},
                {name: one.key for name, one in there.items()},
                {name: one.columns for name, one in there.items()},
            ),
        }
        names = {
            side: choice.roles[0] if choice.roles else sides.APPLICATION
            for side, choice in (("old", roles.old), ("new", roles.new))
        }
        both = {side: Side(sides.as_application(ends[side], names[side]), rows[side]) for side in ends}
        with self._step("generated writes, seen on the new side one by one") as step:
            scout = Scout(both, written, list(there), lambda: _applied(tool, settings))
            for number in range(self._order.clients):
                scout.climb(number)
            found = scout.done()
            rungs = sum(len(one) - 1 for one in found.ladders)
            step.lines.append(f"{rungs} different writes by {len(found.ladders)} clients")
            for name, why in found.left_out.items():
                step.unknown(f"no client writes {name}: {why}")
            if not rungs:
                raise MigratorError(
                    "no row could be written to the old tables",
                    cause="; ".join(f"{name}: {why}" for name, why in found.left_out.items()),
                    remedy="give a file with rows of every table (INSERT or COPY), then rehearse again",
                )
        if found.shared:
            self.account.named.append(
                f"rows of {', '.join(sorted(found.shared))} depend on rows of several clients: no client writes them"
                " on the new side, and they are not compared in the end"
            )
        return found, both

    def _streamed(
        self, settings: Settings, tool: Tool, clients: Clients, filled: Filled, found: Scouted
    ) -> None:
        with self._step("stream under writes on the old side") as step:
            clients.write_for(self._order.seconds, "old")
            step.lines.append(f"{clients.log.commits['old']} transactions, {clients.log.rows['old']} rows")
            needs.disk(self.account, settings, "stream", clients.log.rows["old"])
        clients.rest()
        _applied(tool, settings)
        with self._step("verify, the clients at rest") as step:
            _verdict(step, tool.command("verify", *_only(filled, found)))

    def _there_and_back(self, settings: Settings, tool: Tool, clients: Clients) -> None:
        with self._step("plan of the cut-over, accepted") as step:
            clients.rest()
            done = tool.command("cutover", "plan", "--accept")
            step.lines += done.text.splitlines()
            if done.code:
                raise MigratorError(
                    "`migrator cutover plan --accept` refuses",
                    cause=done.text.strip(),
                    remedy="correct what is named, then rehearse again",
                )
            tool.wait(lambda: _warm(settings), "the way back's beginning")
        for turn, (word, side) in enumerate((("start", "new"), ("back", "old"), ("start", "new"))):
            again = " again" if turn == 2 else ""
            with self._step(f"cutover {word}{again}, under writes") as step:
                self._switch(step, tool, settings, clients, word, side, kill=self._order.kills and turn < 2)
            with self._step(f"writes on the {side} side") as step:
                before = clients.log.commits[side]
                clients.write_for(self._order.seconds, side)
                step.lines.append(f"{clients.log.commits[side] - before} transactions acknowledged")

    def _switch(
        self,
        step: Step,
        tool: Tool,
        settings: Settings,
        clients: Clients,
        word: str,
        side: str,
        *,
        kill: bool,
    ) -> None:
        clients.go()
        time.sleep(_LOOK_S)
        clients.log.pause_s = 0.0
        if kill:
            killed(tool, settings, word, lambda: _warm(settings), step.lines.append)
        else:
            done = tool.command("cutover", word, "--wait", f"{PATIENCE_S:g}")
            step.lines += done.text.splitlines()
            if done.code:
                # Nobody can ask for it once the servers are gone.
                state = tool.command("cutover", "status").text.strip()
                raise MigratorError(
                    f"`migrator cutover {word}` didn't open the {side} side",
                    where=f"exit code {done.code}",
                    cause=f"{done.text.strip()}\n{state}\n{tool.last_lines()}",
                    remedy="correct what is named, then rehearse again",
                )
        record = tool.document("cutover", "status")["record"]
        if record["open_side"] != side or record["phase"] != "idle":
            raise MigratorError(
                f"`migrator cutover {word}` didn't open the {side} side",
                where=f"the {record['open_side']} side is open, phase {record['phase']}",
                cause=record["reason"] or tool.last_lines(),
                remedy="correct what is named, then rehearse again",
            )
        clients.write_for(0.5, side)
        step.lines.append(f"longest pause of a client: {clients.log.pause_s:.1f} s")
        self.account.needs.setdefault("pause", []).append(
            f"cutover {word}: "
            + ", ".join(f"{phase} {seconds:g} s" for phase, seconds in record["took"])
            + f"; longest pause of a client {clients.log.pause_s:.1f} s"
        )

    def _ended(
        self,
        settings: Settings,
        tool: Tool,
        clients: Clients,
        filled: Filled,
        found: Scouted,
        back: bool,
    ) -> None:
        with self._step("everything at rest: no acknowledged write is lost") as step:
            clients.rest()
            _applied(tool, settings)
            if back:
                _applied(tool, way_back(settings))
            lost = list(dict.fromkeys([*clients.log.lost, *clients.differing()]))
            if lost:
                step.failed(
                    *lost[:_SHOWN], *([f"and {len(lost) - _SHOWN} more"] if len(lost) > _SHOWN else [])
                )
            commits = ", ".join(f"{count} on the {side} side" for side, count in clients.log.commits.items())
            step.lines.append(f"acknowledged transactions: {commits}")
        with self._step("verify") as step:
            _verdict(step, tool.command("verify", *_only(filled, found)))
        if back:
            with self._step("verify --reverse") as step:
                _verdict(step, tool.command("verify", "--reverse"))
            return
        self.account.named.append("the way back was not rehearsed: the project has no reverse.py")
        with self._step("cut over by hand: the rest is drained, sequences are set") as step:
            tool.leader.stop()
            for words in (("run", "--until", "caught-up", "--plain"), ("sequences", "--apply")):
                done = tool.command(*words)
                step.lines += done.text.splitlines()[-_SHOWN:]
                if done.code:
                    step.failed(f"`migrator {' '.join(words)}` ended with exit code {done.code}")


class _Shown:
    """A step of an account that is told as it comes and goes."""

    def __init__(self, account: Account, name: str, say: Callable[[str], None]):
        self._context, self._name, self._say = account.step(name), name, say
        self._step: Step | None = None

    def __enter__(self) -> Step:
        self._step = self._context.__enter__()
        return self._step

    def __exit__(self, *error: object) -> None:
        self._context.__exit__(*error)  # type: ignore[arg-type]
        assert self._step is not None
        self._say(f"{self._step.outcome:8} {self._step.took_s:6.1f} s  {self._name}")
        for line in self._step.lines[-_SHOWN:]:
            self._say(f"{'':20}{line}")


def _only(filled: Filled, found: Scouted) -> list[str]:
    """Words that have ``verify`` look at all tables but those that are left out."""
    tables = [name for name in filled["there"] if name not in found.shared]
    return [word for name in tables for word in ("--table", name)] if found.shared else []


def _verdict(step: Step, done: Said) -> None:
    lines = done.text.split("What this check cannot detect")[0].splitlines()
    if done.code == 0:
        step.lines += lines
    elif done.code == 3:
        step.unknown(*lines)
    else:
        step.failed(*lines)


def _dumped(settings: Settings) -> bool:
    ledger = peek(settings)
    return ledger is not None and ledger.checkpoint is not None and ledger.checkpoint.dump_complete()


def _warm(settings: Settings) -> bool:
    """Tells whether the way back has all that a switch asks for: it is refused while a target is filled."""
    found = peek(way_back(settings))
    checkpoint = None if found is None else found.checkpoint
    return checkpoint is not None and checkpoint.dump_complete() and not checkpoint.filling


def _applied(tool: Tool, settings: Settings) -> None:
    position = wiring.source_position(settings)
    tool.wait(lambda: wiring.applied_reaches(settings, position), "what was written is applied")
