"""The leader's progress hint as a file of the state folder. Not synced: it is only a hint."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path

from migrator.errors import MigratorError
from migrator.model.codecs.hint_codec import hint_of, hint_to_json
from migrator.model.hint import Hint

_LEFT_S = 60.0
"""Seconds after which nobody writes any more what takes a millisecond."""


class FileHints:
    """A ``Hints``.

    Args:
        state: the migration's state folder.
    """

    def __init__(self, state: str | os.PathLike[str]):
        self._path = Path(os.path.abspath(state)) / "progress.json"
        self._published = False

    def publish(self, hint: Hint) -> None:
        """Replaces the hint. Raises ``MigratorError`` naming the file."""
        temporary = self._path.with_name(f".progress-{os.getpid()}.tmp")
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._published:
                self._remove_left_over()
                self._published = True
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(
                    json.dumps(hint_to_json(hint), separators=(",", ":"))
                )  # dump would encode in Python
            os.replace(temporary, self._path)
        except OSError as error:
            raise self._refused(error) from error

    def read(self) -> Hint | None:
        """The last hint. Raises ``MigratorError`` naming the file."""
        try:
            return hint_of(self._path.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._refused(error) from error

    def _remove_left_over(self) -> None:
        """Removes what processes that were killed had begun to write."""
        for file in self._path.parent.glob(".progress-*.tmp"):
            with suppress(FileNotFoundError):  # another one removes them as well
                if time.time() - file.stat().st_mtime > _LEFT_S:
                    file.unlink()

    def _refused(self, error: OSError) -> MigratorError:
        return MigratorError(
            "the progress hint can't be kept",
            where=str(error.filename or self._path),
            cause=str(error.strerror or error),
            remedy="give this user access to the state directory and check its free space",
        )
