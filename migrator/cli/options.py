"""Options that several commands share."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any

import click

from migrator.config import project as configuration
from migrator.config.project import Settings
from migrator.config.way_back import way_back


class Amount(click.FloatRange):
    """A number within bounds that is one: click's own takes ``nan``, and ``inf`` where there is no upper bound."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Converts as click does. Fails for what isn't finite."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number


SECONDS = Amount(min=0)
"""A duration: what is no number would be waited for without an end."""

config_option = click.option(
    "--config",
    "config",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("migration.toml"),
    show_default=True,
    help="The project's configuration file.",
)

master_option = click.option("--master", default=None, help="Spark master URL, e.g. spark://host:7077.")

conf_option = click.option(
    "--conf",
    "conf",
    multiple=True,
    metavar="KEY=VALUE",
    help="A spark.* option, passed through; may be repeated.",
)


py_files_option = click.option(
    "--py-files",
    "py_files",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A .py, .zip, .egg or .whl for a cluster's executors, beside the mapping's own modules; may be repeated.",
)


reverse_option = click.option(
    "--reverse",
    is_flag=True,
    help="Of the way back: from the new side to the old one, by its own mapping (`[back]` in the project's file).",
)


json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Machine-readable: one document, in which all is that is printed otherwise.",
)


def print_document(document: Mapping[str, Any]) -> None:
    """Prints what a command says as one JSON document (its schema: docs/schemas)."""
    click.echo(json.dumps(document, ensure_ascii=False, indent=2))


def print_sql(text: str) -> None:
    """Prints statements that somebody runs, to the letter: click would take colours out of a name in a file."""
    click.echo(text, nl=bool(text) and not text.endswith("\n"), color=True)


report_json_option = click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="The JSON report on standard output; what is said on the way goes to standard error.",
)


def print_report(folder: Path, name: str, texts: Sequence[str], as_json: bool) -> None:
    """Prints a report that was written to ``folder`` as files called ``name``: ``texts`` and the files' places, or
    its JSON."""
    if as_json:
        click.echo((folder / f"{name}.json").read_text("utf-8"))
    else:
        for text in texts:
            click.echo(text)
        click.echo(f"reports: {folder}/{name}.html, {name}.json, {name}.xml, {name}.txt")


def chosen(settings: Settings, *, reverse: bool) -> Settings:
    """The settings of the way that is meant. Raises ``ConfigError`` where there can be no way back."""
    return way_back(settings) if reverse else settings


def with_py_files(settings: Settings, files: tuple[Path, ...]) -> Settings:
    """The settings with further files for executors."""
    absolute = tuple(file.absolute() for file in files)
    return replace(settings, spark=replace(settings.spark, py_files=(*settings.spark.py_files, *absolute)))


def spark_options(values: tuple[str, ...]) -> dict[str, str]:
    """``KEY=VALUE`` options as a dict. Raises ``click.BadParameter``."""
    wrong = [value for value in values if "=" not in value]
    if wrong:
        raise click.BadParameter(f"{wrong[0]!r} is not KEY=VALUE", param_hint="--conf")
    return dict(value.split("=", 1) for value in values)


def config_words(settings: Settings) -> list[str]:
    """The words of a command that name the project's file, where it isn't the one that is taken anyway."""
    return [] if settings.file == Path("migration.toml").resolve() else ["--config", str(settings.file)]


def repair_words(settings: Settings) -> list[str]:
    """Returns the first words of a command that repairs this project's target."""
    return ["migrator", "repair", *config_words(settings)]


@dataclass(frozen=True, slots=True)
class OnSpark:
    """A project, and how its Spark is started: ``master`` and ``options`` go before what the settings say."""

    settings: Settings
    master: str | None
    options: dict[str, str]


def on_spark(command: Callable[..., Any]) -> Callable[..., Any]:
    """--config, --master, --conf and --py-files: ``command`` gets them as one ``OnSpark``, before its own
    options."""

    @wraps(command)
    def called(
        config: Path, master: str | None, conf: tuple[str, ...], py_files: tuple[Path, ...], **own: Any
    ) -> Any:
        settings = with_py_files(configuration.load(config), py_files)
        return command(OnSpark(settings, master, spark_options(conf)), **own)

    return config_option(master_option(conf_option(py_files_option(called))))


def either_way(command: Callable[..., Any]) -> Callable[..., Any]:
    """--reverse, above ``on_spark``'s options: ``command`` gets the project of the way that is meant."""

    @wraps(command)
    def called(project: OnSpark, reverse: bool, **own: Any) -> Any:
        return command(replace(project, settings=chosen(project.settings, reverse=reverse)), **own)

    return on_spark(reverse_option(called))
