"""The table of settings, from the sections that the reader of ``migration.toml`` knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from migrator.config.sections import SECTIONS
from migrator.config.setting import TYPE_NAMES, Setting
from tests.reference.blocks import relative, table

PAGE = "reference/settings.md"


def lines() -> Iterator[str]:
    """A heading and a table for each section."""
    source = SECTIONS["source"]
    for section, settings in SECTIONS.items():
        yield from (f"## `[{section}]`", "")
        shown = {
            name: setting
            for name, setting in settings.items()
            if section != "target" or setting != source.get(name)
        }
        yield from table(("Setting", "Value", "Default", "Meaning"), _rows(shown))
        if same := [f"`{name}`" for name in settings if name not in shown]:
            yield from ("", f"As in `[source]`: {', '.join(same)}.")
        yield ""


def _rows(settings: Mapping[str, Setting]) -> Iterator[tuple[str, str, str, str]]:
    for name, setting in settings.items():
        value = " or ".join(f"`{one}`" for one in setting.choices) or TYPE_NAMES[setting.type]
        yield f"`{name}`", value, _default(setting), relative(setting.meaning, PAGE)


def _default(setting: Setting) -> str:
    if setting.needed:
        return "needed"
    if setting.in_words:
        return setting.in_words
    if setting.default in ("", {}, []):
        return "none"
    if isinstance(setting.default, bool):
        return str(setting.default).lower()
    return (
        f"`{setting.default}`"
        if isinstance(setting.default, str)
        else f"{setting.default:g}"
        if isinstance(setting.default, float)
        else str(setting.default)
    )
