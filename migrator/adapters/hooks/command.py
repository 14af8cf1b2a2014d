"""A hook that is a command or a URL. Its contract: docs/how-to/cut-over.md, "The hook"."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping

from migrator.errors import CutoverError
from migrator.model.cutover.record import Side, What
from migrator.model.server import Server

_SAID = 2_000
"""Characters of what it says that are kept."""


class SwitchHook:
    """``ports.cutover.Hook``.

    Args:
        hooks: by what is pointed, a command for the shell, or a URL that begins with http:// or https://.
        migration: name of the migration.
        sides: where both sides are.
    """

    def __init__(self, hooks: Mapping[What, str], migration: str, sides: Mapping[Side, Server]):
        self._hooks = hooks
        self._migration = migration
        self._sides = sides

    def call(self, side: Side, key: str, limit_s: float, what: What = What.WRITES) -> None:
        """See the port."""
        hook = self._hooks[what]
        document = self._document(side, f"{self._migration}-{key}", what)
        if not hook:
            raise _failed(f"[cutover], {what}", "the accepted plan has one, the settings have none")
        if hook.startswith(("http://", "https://")):
            _post(hook, document, limit_s)
        else:
            _run(hook, document, limit_s)

    def _document(self, side: Side, key: str, what: What) -> dict[str, object]:
        server = self._sides[side]
        return {
            "migration": self._migration,
            "side": side.value,
            "what": what.value,
            "key": key,
            "kind": server.kind,
            "host": server.host,
            "port": server.port,
            "database": server.database,
        }


def _run(hook: str, document: Mapping[str, object], limit_s: float) -> None:
    variables = {f"MIGRATOR_{name.upper()}": str(value) for name, value in document.items()}
    with subprocess.Popen(
        hook,
        shell=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, **variables},
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(json.dumps(document), limit_s)
        except subprocess.TimeoutExpired:
            # What the shell has started mustn't go on: it would point the application while the switch is undone.
            os.killpg(process.pid, signal.SIGKILL)
            raise _failed(hook, f"it didn't end within {limit_s:g} s") from None
    if process.returncode:
        said = (err or out).strip()[-_SAID:]
        raise _failed(hook, f"it ended with exit code {process.returncode}: {said or 'it said nothing'}")


def _post(hook: str, document: Mapping[str, object], limit_s: float) -> None:
    request = urllib.request.Request(
        hook,
        json.dumps(document).encode(),
        {"Content-Type": "application/json", "Idempotency-Key": str(document["key"])},
        method="POST",
    )
    try:
        with urllib.request.urlopen(request, timeout=limit_s):
            return
    except urllib.error.HTTPError as error:
        said = error.read(_SAID).decode(errors="replace").strip()
        raise _failed(hook, f"it answered {error.code}: {said}") from None
    except OSError as error:
        raise _failed(hook, str(error)) from None


def _failed(hook: str, cause: str) -> CutoverError:
    return CutoverError(
        "the hook of the cut-over failed",
        where=hook,
        cause=cause,
        remedy="mend it, then start again",
    )
