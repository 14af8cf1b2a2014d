"""Follows a tutorial to the letter: runs its commands, writes its files, presses Enter where it says so.

Comments in the document say what a block is for: ``run`` (commands of one terminal), ``run: background NAME`` (a
command that goes on in a terminal of its own), ``write: FILE``, ``press: NAME`` (Enter in that terminal, whose output
the block then shows), ``stop: NAME`` (Ctrl-C there). Lines of a console block that are no commands must be printed.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.integration.waiting import await_true

_STEP = re.compile(
    r"<!-- (run|write|press|stop)(?:: (background )?(\S+))? -->|```(console|python)\n(.*?)```", re.S
)
_LONG_S = 300.0
"""A bound on hanging, not on slow machines."""


@dataclass(frozen=True)
class Step:
    """One thing to do: ``run``, ``background``, ``write``, ``press``, ``stop``; ``name``: of a terminal or file."""

    kind: str
    name: str = ""
    block: str = ""

    def commands(self) -> list[str]:
        """Commands of the block."""
        return [line.removeprefix("$ ") for line in self.block.splitlines() if line.startswith("$ ")]

    def shown(self) -> list[str]:
        """Lines that the block shows as printed."""
        return [line for line in self.block.splitlines() if line and not line.startswith("$ ")]


def steps(text: str) -> Iterator[Step]:
    """The steps of a document. Every console block belongs to one: raises ``ValueError`` for another."""
    due: Step | None = None
    for found in _STEP.finditer(text):
        what, background, name, language, block = found.groups()
        if what == "stop":
            yield Step("stop", name)
        elif what:
            due = Step("background" if background else what, name or "")
        elif due is not None:
            yield Step(due.kind, due.name, block)
            due = None
        elif language == "console":
            raise ValueError(f"no comment says what is to be done with {block!r}")


@dataclass
class Terminal:
    """A command that goes on, and all that it has printed."""

    process: subprocess.Popen[bytes]
    output: Path

    def printed(self) -> str:
        """Returns its output so far. Fails the test where the process has ended with an error."""
        assert self.process.poll() in (None, 0), self.output.read_text()
        return self.output.read_text()

    def enter(self) -> None:
        """Presses Enter."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def stop(self) -> None:
        """Presses Ctrl-C; the command must end with 0."""
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(_LONG_S) == 0, self.output.read_text()


@dataclass
class Reader:
    """Somebody who does what the document says, in a folder."""

    folder: Path
    terminals: dict[str, Terminal] = field(default_factory=dict)
    _before: list[str] = field(default_factory=list)
    """Commands that later ones rely on: folders entered, variables read."""

    def follow(self, step: Step) -> None:
        """Does one step. Fails the test where a command fails, or a line that is shown isn't printed."""
        if step.kind == "write":
            (self.folder / step.name).write_text(step.block)
        elif step.kind == "stop":
            self.terminals[step.name].stop()
        elif step.kind == "run":
            self._run(step)
        else:
            if step.kind == "background":
                [command] = step.commands()
                self.terminals[step.name] = self._begun(step.name, command)
                seen = 0
            else:
                seen = len(self.terminals[step.name].printed())
                self.terminals[step.name].enter()
            terminal = self.terminals[step.name]
            await_true(lambda: not missing(step.shown(), terminal.printed()[seen:]), str(step), _LONG_S)

    def close(self) -> None:
        """Ends what is still running."""
        for terminal in self.terminals.values():
            terminal.process.kill()
            terminal.process.wait()

    def _run(self, step: Step) -> None:
        script = "; ".join(["set -euo pipefail", *self._before, *step.commands()])
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=3 * _LONG_S,
            text=True,
        )
        assert done.returncode == 0, done.stdout
        assert not missing(step.shown(), done.stdout), done.stdout
        self._before += [command for command in step.commands() if command.startswith((". ", "cd "))]

    def _begun(self, name: str, command: str) -> Terminal:
        output = self.folder / f"{name}.out"
        words = ["bash", "-c", "; ".join([*self._before, f"exec {shlex.join(shlex.split(command))}"])]
        with output.open("wb") as file:
            process = subprocess.Popen(
                words, cwd=self.folder, env=_environment(), stdin=subprocess.PIPE, stdout=file, stderr=file
            )
        return Terminal(process, output)


def missing(shown: list[str], printed: str) -> list[str]:
    """The lines of a block that the output doesn't have, in that order."""
    place, lacking = 0, []
    for line in shown:
        at = printed.find(line, place)
        if at < 0:
            lacking.append(line)
        else:
            place = at + len(line)
    return lacking


def _environment() -> Mapping[str, str]:
    """Ours, with the commands of this installation before all others."""
    return {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONUNBUFFERED": "1",
    }
