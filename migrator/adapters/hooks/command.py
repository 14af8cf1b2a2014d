"""A hook that is a command or a URL. Its contract: docs/how-to/cut-over.md, "The hook"."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from migrator.adapters.hooks.post import posted
from migrator.adapters.hooks.shell import ran
from migrator.errors import CutoverError
from migrator.model.cutover.hook import is_url
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
        if failure := _post(hook, document, limit_s) if is_url(hook) else _run(hook, document, limit_s):
            raise _failed(hook, failure)

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


def _run(hook: str, document: Mapping[str, object], limit_s: float) -> str:
    """Runs the command; returns how it failed, else empty."""
    variables = {f"MIGRATOR_{name.upper()}": str(value) for name, value in document.items()}
    try:
        return ran(hook, json.dumps(document), {**os.environ, **variables}, limit_s, _SAID)
    except (OSError, ValueError) as error:
        return f"it can't be started: {error}"


def _post(hook: str, document: Mapping[str, object], limit_s: float) -> str:
    """Sends the request; returns how it failed, else empty."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": str(document["key"])}
    return posted(hook, json.dumps(document).encode(), headers, limit_s, _SAID)


def _failed(hook: str, cause: str) -> CutoverError:
    return CutoverError(
        "the hook of the cut-over failed",
        where=hook,
        cause=cause,
        remedy="mend it, then start again",
    )
