"""A project's settings with its sides exchanged: the way back is a migration like any other."""

from __future__ import annotations

from dataclasses import replace

from migrator.config.back import Back
from migrator.config.project import NAME, Settings
from migrator.errors import ConfigError


def has_way_back(settings: Settings) -> bool:
    """Tells whether the project is led both ways: these settings are the way back's, or its mapping is there."""
    back = settings.back
    return settings.reversed or (settings.cutover is not None and back is not None and back.mapping.exists())


def way_back(settings: Settings) -> Settings:
    """Returns the settings of the way back: a migration from the new side to the old one.

    The old tables have their rows: it applies changes only. Its name, state folder and mapping are its own. Raises
    ``ConfigError`` where the migration's name leaves no room for its name.
    """
    back = settings.back or Back(settings.mapping.with_name("reverse.py"), settings.target, settings.source)
    if not NAME.fullmatch(settings.counterpart):
        raise ConfigError(
            f"the migration's name {settings.name!r} is too long for a way back",
            where=f"{settings.file}: migration.name",
            cause=f"the way back would be called {settings.counterpart}; a name has 31 characters at most",
            remedy="give it a shorter name and start it anew (docs/how-to/start-anew.md)",
        )
    return replace(
        settings,
        name=settings.counterpart,
        mapping=back.mapping,
        state=settings.state / "back",
        source=back.source,
        target=back.target,
        placement="witness",
        server_id=0,
        log="server",
        forget_changes=False,
        replaced_tables="stop",
        text_columns={},
        accepted=(),
        observe=settings.observe.turned(),
        reversed=True,
    )
