"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

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


def spark_options(values: tuple[str, ...]) -> dict[str, str]:
    """``KEY=VALUE`` options as a dict. Raises ``click.BadParameter``."""
    wrong = [value for value in values if "=" not in value]
    if wrong:
        raise click.BadParameter(f"{wrong[0]!r} is not KEY=VALUE", param_hint="--conf")
    return dict(value.split("=", 1) for value in values)
