"""The interface of every fault, which is created from its options, fired in a world, and healed; and the options."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, cast

from migrator.errors import ConfigError, MigratorError
from scenarios.proxy.proxy import TcpProxy
from scenarios.scenario import FaultSpec
from scenarios.world import Side, World

SideName = Literal["source", "target"]
_MISSING = object()


class Options:
    """A fault's options, read by name and type. ``end`` refuses what nobody read.

    Every method raises ``ConfigError`` that names the fault and the option.
    """

    def __init__(self, spec: FaultSpec):
        self.fault = spec.do
        self._unread = dict(spec.options)

    def side(self, default: SideName | None = None) -> SideName:
        """Returns the server that the option names: ``source`` or ``target``."""
        return cast(SideName, self.choice("side", ("source", "target"), default))

    def choice(self, name: str, allowed: Iterable[str], default: str | None = None) -> str:
        """Reads a word, which must be one of those allowed."""
        value = self.text(name, default)
        if value not in tuple(allowed):
            raise self._wrong(name, value, f"one of {', '.join(allowed)}")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """Reads a text. Without a default the option must be there."""
        value = self._take(name, default)
        if not isinstance(value, str):
            raise self._wrong(name, value, "a text")
        return value

    def texts(self, name: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Reads a text, or a list of at least one text. Without a default the option must be there."""
        value = self._take(name, default)
        if value is default:
            return default or ()
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list | tuple) or not values or not all(isinstance(v, str) for v in values):
            raise self._wrong(name, value, "a text or a list of texts")
        return tuple(values)

    def flag(self, name: str, default: bool) -> bool:
        """Reads true or false."""
        value = self._take(name, default)
        if not isinstance(value, bool):
            raise self._wrong(name, value, "true or false")
        return value

    def number(self, name: str, default: float | None = None, *, least: float = 0.0) -> float:
        """Reads a number, which must not be below ``least``."""
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
            raise self._wrong(name, value, f"a number from {least:g} on")
        return float(value)

    def whole(self, name: str, default: int | None = None, *, least: int = 0) -> int:
        """Reads a whole number, which must not be below ``least``."""
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self._wrong(name, value, f"a whole number from {least} on")
        return value

    def end(self) -> None:
        """Raises ``ConfigError`` for options that nobody has read by now."""
        if self._unread:
            unknown = ", ".join(sorted(self._unread))
            raise ConfigError(
                f"the fault {self.fault} has no option {unknown}", where=f"{self.fault}: {unknown}"
            )

    def _take(self, name: str, default: object) -> Any:
        value = self._unread.pop(name, _MISSING)
        if value is _MISSING:
            if default is None:
                raise ConfigError(f"the fault {self.fault} needs the option {name}", where=self.fault)
            return default
        return value

    def _wrong(self, name: str, value: object, wanted: str) -> ConfigError:
        return ConfigError(
            f"the fault {self.fault} can't have {name}: {value!r}",
            where=f"{self.fault}: {name}",
            remedy=f"give it {wanted}",
        )


class Fault:
    """Something that goes wrong. A subclass reads its options in ``__init__``.

    If a fault can't be placed, ``prepare`` or ``fire`` raises a named error, so that it never counts as placed.

    Attributes:
        needs_proxy: the side that the pipeline must reach through a proxy; None if it may reach both directly.
        needs_zookeeper: a ZooKeeper must say who leads.
        needs_cluster: Spark must run on a cluster of its own processes.
        needs_replica: a second server must follow the source.
    """

    needs_proxy: SideName | None = None
    needs_zookeeper = False
    needs_cluster = False
    needs_replica = False

    def __init__(self, options: Options):
        self.name = options.fault

    def environment(self, world: World) -> Mapping[str, str]:
        """Variables that the pipeline must have from its start."""
        return {}

    def prepare(self, world: World) -> None:
        """Prepares the fault. Called once: the project is there, the pipeline hasn't been started yet."""

    def fire(self, world: World) -> None:
        """Makes the fault happen. Called while the pipeline is held at a point, or at any time; returns soon."""
        raise AssertionError(f"{self.name} doesn't say how it fires")

    def heal(self, world: World) -> None:
        """Undoes the fault, or does its last part. Called once at most, after ``fire``."""

    def effect(self) -> str:
        """Tells the effect that is known; empty while nothing has happened, e.g. a reset that waits for its byte."""
        return ""

    def close(self) -> None:
        """Releases the machine's resources that the fault holds. Called at the scenario's end; safe to call twice."""


class PlacedFault:
    """A fault together with its world, as the runner uses it."""

    def __init__(self, fault: Fault, spec: FaultSpec, world: World):
        self._fault = fault
        self._world = world
        self.spec = spec

    def environment(self) -> Mapping[str, str]:
        """See ``Fault.environment``."""
        return self._fault.environment(self._world)

    def prepare(self) -> None:
        """See ``Fault.prepare``."""
        self._fault.prepare(self._world)

    def fire(self) -> None:
        """See ``Fault.fire``."""
        self._fault.fire(self._world)

    def heal(self) -> None:
        """See ``Fault.heal``."""
        self._fault.heal(self._world)

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return self._fault.effect()

    def close(self) -> None:
        """See ``Fault.close``."""
        self._fault.close()


def side_of(world: World, name: SideName) -> Side:
    """The side of that name."""
    return world.source if name == "source" else world.target


def proxy_of(world: World, name: SideName, fault: str) -> TcpProxy:
    """The proxy in front of a side. Raises ``MigratorError`` when there is none."""
    proxy = side_of(world, name).proxy
    if proxy is None:
        raise MigratorError(
            f"the fault {fault} needs a proxy in front of the {name}",
            where=fault,
            remedy="ask registry.sides_with_proxy() before the servers' addresses are given to the pipeline",
        )
    return proxy


def impossible(fault: str, cause: str, remedy: str = "") -> MigratorError:
    """The error of a fault that this machine or this moment doesn't allow."""
    return MigratorError(f"the fault {fault} can't be placed here", where=fault, cause=cause, remedy=remedy)


def state_folder(world: World) -> Path:
    """The pipeline's state folder, as its ``migration.toml`` says; absolute, whether it exists or not."""
    migration = tomllib.loads(world.config.read_text())["migration"]
    return world.config.resolve().parent / str(migration.get("state", ".migrator"))


def migration_name(world: World) -> str:
    """The migration's name."""
    return str(tomllib.loads(world.config.read_text())["migration"]["name"])
