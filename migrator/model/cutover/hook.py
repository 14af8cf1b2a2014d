"""A hook's text: a command for the shell, or a URL."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_url(hook: str) -> bool:
    """Tells whether a hook is a URL of http or https."""
    return hook.lower().startswith(("http://", "https://"))


def url_problem(hook: str) -> str:
    """Returns what is wrong with a hook that is a URL, and what to do; empty for a good one, and for a command."""
    if not is_url(hook):
        return "it has a character of code 0, which no command can have: leave it out" if "\0" in hook else ""
    if not hook.isascii() or any(character <= " " or character == "\x7f" for character in hook):
        return "a URL has no spaces and no letters beyond ASCII: write %20 and the like, and xn-- for a host's name"
    try:
        parts = urlsplit(hook)
        port = parts.port
    except ValueError as error:
        return f"it is no URL ({error}): write http://host:port/path"
    if not parts.hostname:
        return "it names no host: write http://host:port/path"
    if port == 0:
        return "port 0 is none: write http://host:port/path"
    if parts.username is not None:
        return "a login in a URL isn't sent, and would be shown: use a command that sends it"
    return ""
