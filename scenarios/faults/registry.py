"""Every fault by its name."""

from __future__ import annotations

from collections.abc import Iterable

from migrator.errors import ConfigError
from scenarios.faults import coordination, data, host, log, network, processes, repairs, replicas, servers
from scenarios.faults.fault import Fault, Options, PlacedFault, SideName
from scenarios.faults.points import parse_point
from scenarios.scenario import FaultSpec
from scenarios.world import World

_FAULTS: dict[str, type[Fault]] = {
    **processes.FAULTS,
    **servers.FAULTS,
    **network.FAULTS,
    **log.FAULTS,
    **data.FAULTS,
    **host.FAULTS,
    **coordination.FAULTS,
    **replicas.FAULTS,
    **repairs.FAULTS,
}


def fault_names() -> tuple[str, ...]:
    """The whole vocabulary, sorted."""
    return tuple(sorted(_FAULTS))


def fault(spec: FaultSpec, world: World) -> PlacedFault:
    """The fault of a spec, in its world. Raises ``ConfigError`` for an unknown name or option."""
    return PlacedFault(_fault(spec), spec, world)


def check(spec: FaultSpec) -> None:
    """Checks the words of a spec: name, options, point.

    Raises ``ConfigError`` for the wrong one. Needs no world, so that a scenario can be checked when it is read.
    """
    _fault(spec)
    if spec.at:
        parse_point(spec.at)


def sides_with_proxy(specs: Iterable[FaultSpec]) -> frozenset[SideName]:
    """The sides that the pipeline must reach through a proxy if these faults are to be placed."""
    faults = [_fault(spec) for spec in specs]
    return frozenset(fault.needs_proxy for fault in faults if fault.needs_proxy is not None)


def needs_zookeeper(specs: Iterable[FaultSpec]) -> bool:
    """Returns whether a ZooKeeper must say who leads if these faults are to be placed."""
    return any(_fault(spec).needs_zookeeper for spec in specs)


def needs_cluster(specs: Iterable[FaultSpec]) -> bool:
    """Returns whether Spark must run on a cluster if these faults are to be placed."""
    return any(_fault(spec).needs_cluster for spec in specs)


def needs_replica(specs: Iterable[FaultSpec]) -> bool:
    """Returns whether a second server must follow the source if these faults are to be placed."""
    return any(_fault(spec).needs_replica for spec in specs)


def _fault(spec: FaultSpec) -> Fault:
    wanted = _FAULTS.get(spec.do)
    if wanted is None:
        raise ConfigError(
            f"there is no fault {spec.do!r}", where="do", remedy=f"name one of: {', '.join(fault_names())}"
        )
    options = Options(spec)
    fault = wanted(options)
    options.end()
    return fault
