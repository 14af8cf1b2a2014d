"""A hook that is a command or a URL. Its contract: docs/how-to/cut-over.md, "The hook"."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping

from migrator.errors import CutoverError
from migrator.model.cutover.record import Side
from migrator.model.server import Server

_SAID = 2_000
"""Characters of what it says that are kept."""


class SwitchHook:
    """``ports.cutover.Hook``.

    Args:
        hook: a command for the shell, or a URL that begins with http:// or https://.
        migration: name of the migration.
        sides: where both sides are.
    """

    def __init__(self, hook: str, migration: str, sides: Mapping[Side, Server]):
        self._hook = hook
        self._migration = migration
        self._sides = sides

    def call(self, side: Side, key: str, limit_s: float) -> None:
        """See the port."""
        document = self._document(side, f"{self._migration}-{key}")
        if self._hook.startswith(("http://", "https://")):
            self._post(document, limit_s)
        else:
            self._run(document, limit_s)

    def _document(self, side: Side, key: str) -> dict[str, object]:
        server = self._sides[side]
        return {
            "migration": self._migration,
            "side": side.value,
            "key": key,
            "kind": server.kind,
            "host": server.host,
            "port": server.port,
            "database": server.database,
        }

    def _run(self, document: Mapping[str, object], limit_s: float) -> None:
        variables = {f"MIGRATOR_{name.upper()}": str(value) for name, value in document.items()}
        try:
            done = subprocess.run(
                self._hook,
                shell=True,
                input=json.dumps(document),
                capture_output=True,
                text=True,
                timeout=limit_s,
                env={**os.environ, **variables},
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise self._failed(f"it didn't end within {limit_s:g} s") from None
        if done.returncode:
            said = (done.stderr or done.stdout).strip()[-_SAID:]
            raise self._failed(f"it ended with exit code {done.returncode}: {said or 'it said nothing'}")

    def _post(self, document: Mapping[str, object], limit_s: float) -> None:
        request = urllib.request.Request(
            self._hook,
            json.dumps(document).encode(),
            {"Content-Type": "application/json", "Idempotency-Key": str(document["key"])},
            method="POST",
        )
        try:
            with urllib.request.urlopen(request, timeout=limit_s):
                return
        except urllib.error.HTTPError as error:
            said = error.read(_SAID).decode(errors="replace").strip()
            raise self._failed(f"it answered {error.code}: {said}") from None
        except OSError as error:
            raise self._failed(str(error)) from None

    def _failed(self, cause: str) -> CutoverError:
        return CutoverError(
            "the hook of the cut-over failed",
            where=self._hook,
            cause=cause,
            remedy="mend it, then start again",
        )
