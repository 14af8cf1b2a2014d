"""A hook that is told of events: a command of the shell, or a URL."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from migrator.adapters.hooks.post import posted
from migrator.adapters.hooks.shell import ran, short
from migrator.model.cutover.hook import is_url

LIMIT_S = 10.0
"""Seconds that the hook may take for one event."""
_SAID = 500
"""Characters of what it says that are kept."""


def told_of(hook: str, document: Mapping[str, object]) -> str:
    """Tells the hook of an event; returns why it failed, in words, and an empty text where it didn't.

    A command gets the document on its standard input, and its fields as ``MIGRATOR_EVENT``, ``MIGRATOR_WORDS`` and
    the like, cut where they are very long; a URL gets it in a POST.
    """
    body = json.dumps(document)
    if is_url(hook):
        return posted(hook, body.encode(), {"Content-Type": "application/json"}, LIMIT_S, _SAID)
    variables = {f"MIGRATOR_{name.upper()}": short(str(value)) for name, value in document.items()}
    try:
        return ran(hook, body, {**os.environ, **variables}, LIMIT_S, _SAID)
    except (OSError, ValueError) as error:
        return f"it can't be started: {error}"
