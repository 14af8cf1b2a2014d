"""The stories: migration projects over real databases, each with writers and a judge of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from migrator.errors import ConfigError
from scenarios.database import Connection, Database
from scenarios.stories.employees import old_schema as personnel
from scenarios.stories.employees import oracle as personnel_oracle
from scenarios.stories.employees.writers import PersonnelWriters
from scenarios.stories.sakila import old_schema as shop
from scenarios.stories.sakila import oracle as shop_oracle
from scenarios.stories.sakila.writers import ShopWriters
from scenarios.stories.words import Difference, Table
from scenarios.stories.writers import StoryWriters

HERE = Path(__file__).parent


class Load(Protocol):
    """Makes and fills the old tables of an empty database."""

    def __call__(self, database: Database, *, extra_rows: bool = True) -> None:
        """Raises the driver's error if a table exists."""
        ...


@dataclass(frozen=True)
class Story:
    """One story.

    Attributes:
        name: also of its folder.
        sources: kinds of old databases it has data for; the first is the default.
        targets: kinds of new databases it has a schema for; the first is the default.
        load: fills the old side.
        writers: the old application at work.
        expected: what the new tables must hold, by the old ones; shares no code with the mapping.
        actual: what they hold, as a connection's transaction sees them.
        differences: between the two, both at rest.
    """

    name: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    load: Load
    writers: type[StoryWriters]
    expected: Callable[[Database], dict[str, Table]]
    actual: Callable[[Connection, Mapping[str, Table]], dict[str, Table]]
    differences: Callable[[Database, Database], list[Difference]]

    @property
    def folder(self) -> Path:
        """The project: mapping and revisions."""
        return HERE / self.name


STORIES = {
    story.name: story
    for story in (
        Story(
            "sakila",
            ("mariadb", "mysql"),
            ("postgresql",),
            shop.load,
            ShopWriters,
            shop_oracle.expected_tables,
            shop_oracle.actual_tables,
            shop_oracle.differences,
        ),
        Story(
            "employees",
            ("mariadb", "mysql", "postgresql"),
            ("mariadb", "mysql", "postgresql"),
            personnel.load,
            PersonnelWriters,
            personnel_oracle.expected_tables,
            personnel_oracle.actual_tables,
            personnel_oracle.differences,
        ),
    )
}


def story_of(name: str, source: str | None = None, target: str | None = None) -> tuple[Story, str, str]:
    """A story, and the kinds of its old and new database. Raises ``ConfigError`` for what there isn't."""
    story = STORIES.get(name)
    if story is None:
        raise ConfigError(
            f"there is no story {name!r}",
            where=str(HERE),
            cause=f"there are: {', '.join(sorted(STORIES))}",
            remedy=f"migrator story {min(STORIES)}, or make story NAME={min(STORIES)}",
        )
    for side, what, wanted, kinds in (
        ("source", "data for", source, story.sources),
        ("target", "schema for", target, story.targets),
    ):
        if wanted is not None and wanted not in kinds:
            raise ConfigError(
                f"the story {name!r} has no {what} {wanted}",
                where=str(story.folder),
                cause=f"its {'old' if side == 'source' else 'new'} database runs on: {', '.join(kinds)}",
                remedy=f"--{side} {kinds[0]}",
            )
    return story, source or story.sources[0], target or story.targets[0]
