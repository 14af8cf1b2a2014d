"""One change of one line or two of the code, and the copy of the tree in which it is made."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from migrator.errors import ConfigError

ROOT = Path(__file__).parents[3]
PACKAGES = ("migrator", "transforms", "verify", "scenarios", "tests")
_BESIDE = ("pyproject.toml", "docs", "Makefile", "README.md", "CONTRIBUTING.md", "docker", ".ci", ".github")
_LEFT_OUT = shutil.ignore_patterns("__pycache__")


@dataclass(frozen=True, slots=True)
class CodeMutant:
    """One change to the code.

    Attributes:
        name: what the changed code does wrongly, as a sentence; unique.
        path: the file, relative to the project's folder.
        before: text that stands in the file exactly once.
        after: what stands there instead.
        tests: arguments of pytest: the tests that should notice.
        equivalent: why no test can notice, or empty. Such a change isn't tried.
    """

    name: str
    path: str
    before: str
    after: str
    tests: tuple[str, ...]
    equivalent: str = ""

    def changed(self, source: str) -> str:
        """The file's text with the change. Raises ``ConfigError`` where the text isn't there exactly once."""
        found = source.count(self.before)
        if found != 1:
            raise ConfigError(
                f"the mutant {self.name!r} doesn't fit the code any more",
                where=self.path,
                cause=f"its text stands there {found} times: {self.before!r}",
                remedy="correct the mutant's text, in scenarios/mutants/in_code",
            )
        return source.replace(self.before, self.after)


def mutants_of(path: str, tests: Iterable[str], *changes: tuple[str, str, str]) -> tuple[CodeMutant, ...]:
    """The mutants of one file: ``(name, before, after)`` each."""
    chosen = tuple(tests)
    return tuple(CodeMutant(name, path, before, after, chosen) for name, before, after in changes)


def equivalent(path: str, name: str, before: str, after: str, why: str) -> CodeMutant:
    """A change that no test can notice, with the reason."""
    return CodeMutant(name, path, before, after, (), why)


class Copy:
    """A copy of the project's tree whose files can be changed; the files themselves are shared by links.

    Args:
        folder: an empty folder on the project's file system.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        for package in PACKAGES:
            shutil.copytree(ROOT / package, folder / package, ignore=_LEFT_OUT, copy_function=_link)
        for name in _BESIDE:
            if (ROOT / name).exists():
                (folder / name).symlink_to(ROOT / name)

    @contextmanager
    def broken(self, mutant: CodeMutant) -> Iterator[None]:
        """Makes a change for as long as the context lasts."""
        path = self.folder / mutant.path
        original = ROOT / mutant.path
        changed = mutant.changed(original.read_text(encoding="utf-8"))
        path.unlink()  # the link: the project's own file stays as it is
        path.write_text(changed, encoding="utf-8")
        try:
            yield
        finally:
            path.unlink()
            _link(str(original), str(path))


def _link(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
    return target
