"""Sets the stage of a run: servers, proxies, old schema, project, new schema. Everything ends with the stack."""

from __future__ import annotations

import os
import random
import tomllib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from sqlalchemy import URL

from migrator.config import project as configuration
from migrator.embedded.java import java_home
from migrator.embedded.mariadb import EmbeddedMariaDB
from migrator.embedded.mysql import EmbeddedMySQL
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.process import LOCALHOST, scratch_directory
from migrator.embedded.spark import EmbeddedSparkCluster
from migrator.embedded.zookeeper import EmbeddedZooKeeper
from migrator.errors import MigratorError
from migrator.model.coordination import Coordination
from migrator.model.server import Server
from migrator.schema import upgrade_target
from migrator.wiring import parts as wiring
from scenarios.database import Database
from scenarios.faults.registry import needs_cluster, needs_replica, needs_zookeeper, sides_with_proxy
from scenarios.logins import make_logins
from scenarios.project import make_project
from scenarios.proxy.proxy import TcpProxy
from scenarios.replicas import follow
from scenarios.scenario import Engine, Scenario
from scenarios.toml_text import merged, toml_text
from scenarios.workloads.base import Workload
from scenarios.workloads.registry import workload
from scenarios.world import Side, ZooKeeperSide

MIGRATION = "scenario"
"""Name of the migration in its project."""
_CHUNKS = 20
_LEAST_CHUNK_ROWS = 5
_SESSION_S = 4.0
_BATCH_ROWS = (200, 2_000, 200_000)
"""Rows of a batch; the seed chooses. Many small batches find other faults than few large ones do."""
PIPELINE_USER = "pipeline"
"""The login of the pipeline on either side."""
_PASSWORD = "first-password"
_PASSWORD_VARIABLES = {"source": "SCENARIO_SOURCE_PASSWORD", "target": "SCENARIO_TARGET_PASSWORD"}


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that exists before the pipeline's first start.

    Attributes:
        folder: scratch folder, reachable for the servers' users.
        config: the project's ``migration.toml``; it names the addresses that the pipeline uses.
        settings: the same project, but straight to the servers.
        source: old side.
        target: new side.
        workload: created, its writers not started.
        environment: variables that the pipeline needs (passwords). Its logins have the printed rights, no others.
        zookeeper: says who leads; None where a lock file does.
        cluster: where Spark's tasks run; None where they run in the pipeline's own JVM.
    """

    folder: Path
    config: Path
    settings: configuration.Settings
    source: Side
    target: Side
    workload: Workload
    environment: Mapping[str, str]
    zookeeper: ZooKeeperSide | None = None
    cluster: EmbeddedSparkCluster | None = None


def set_up(stack: ExitStack, scenario: Scenario, engine: Engine, seed: int) -> Stage:
    """Starts and makes everything. Raises ``MigratorError`` with what can't be had."""
    folder = stack.enter_context(scratch_directory("migrator-scenario-"))
    protected = {
        str(fault.options.get("side", "source")) for fault in scenario.faults if fault.do == "rotate_password"
    }
    proxied = sides_with_proxy(scenario.faults)
    with ThreadPoolExecutor(2) as pool:
        old = pool.submit(_server, stack, folder, engine, scenario.server, "source" in protected)
        new = pool.submit(_target, stack, folder, "target" in protected)
        source, target = old.result(), new.result()
    if "source" in proxied:
        source = behind_proxy(stack, source, seed)
    if needs_replica(scenario.faults):
        source = _followed(stack, folder, source)
    if "target" in proxied:
        target = behind_proxy(stack, target, seed + 1)
    found = workload(scenario.workload.name)
    found.create(source.direct, scenario.workload)
    batch_rows = batch_rows_of(f"{scenario.name}/{engine}/{seed}")
    zookeeper = _zookeeper(stack, folder) if needs_zookeeper(scenario.faults) else None
    cluster = None
    if needs_cluster(scenario.faults):
        cluster = stack.enter_context(EmbeddedSparkCluster(folder / "cluster", java_home=java_home()))
    spark = _spark(cluster)
    config = _project(folder, scenario, found, source, target, batch_rows, zookeeper, spark)
    environment = dict.fromkeys(_PASSWORD_VARIABLES.values(), _PASSWORD)
    poor = configuration.load(config, environment)
    settings = direct(poor, source.direct, target.direct)
    if zookeeper is not None:
        settings = replace(settings, coordination=zookeeper.settings)
    wiring.upgrade_user_target(settings)
    make_logins(poor, source.direct, target.direct, _PASSWORD, scenario.grants)
    if scenario.expect.ending != "refused":
        # `migrator run` would create the ledger's table later: a recorder needs it before the first run.
        _make_ledger(replace(target.direct, user=PIPELINE_USER, password=_PASSWORD))
    return Stage(folder, config, settings, source, target, found, environment, zookeeper, cluster)


def _spark(cluster: EmbeddedSparkCluster | None) -> dict[str, object]:
    """Settings of a driver in local mode, or of one that shares the machine with a cluster's workers."""
    if cluster is None:
        return {"master": "local[1]"}
    options = os.environ.get("SPARK_SUBMIT_OPTS", "").split()  # executors start as drivers do
    conf = {
        "spark.driver.host": LOCALHOST,
        "spark.driver.bindAddress": LOCALHOST,
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": " ".join(one for one in options if not one.startswith("-Dspark.")),
    }
    return {"master": cluster.url, "conf": conf}


def _zookeeper(stack: ExitStack, folder: Path) -> ZooKeeperSide:
    server = stack.enter_context(EmbeddedZooKeeper(folder / "zookeeper", java_home=java_home()))
    proxy = stack.enter_context(TcpProxy(server.host, server.port))
    direct = Coordination(server.hosts, session_s=_SESSION_S, shared_event_log=True)
    return ZooKeeperSide(server, proxy, direct, MIGRATION)


def _make_ledger(target: Database) -> None:
    url = URL.create(
        "postgresql+psycopg", target.user, target.password, target.host, target.port, target.database
    )
    upgrade_target(url)


def _server(
    stack: ExitStack, folder: Path, engine: Engine, settings: Mapping[str, str], protected: bool
) -> Side:
    if engine == "postgresql":
        return _postgres(stack, folder / "old", "old", settings, protected)
    server = (EmbeddedMySQL if engine == "mysql" else EmbeddedMariaDB)(folder / "old", settings=settings)
    stack.enter_context(server)
    server.create_database("old")
    direct = Database(engine, server.host, server.port, "old", server.superuser)
    return Side(direct, replace(direct, user=PIPELINE_USER, password=_PASSWORD), server)


def _target(stack: ExitStack, folder: Path, protected: bool) -> Side:
    return _postgres(stack, folder / "new", "new", {}, protected)


def _postgres(
    stack: ExitStack, folder: Path, database: str, settings: Mapping[str, str], protected: bool
) -> Side:
    server = EmbeddedPostgres(
        folder,
        settings=settings,
        auth="scram-sha-256" if protected else "trust",
        password="direct-password" if protected else None,
    )
    stack.enter_context(server)
    server.create_database(database)
    direct = Database(
        "postgresql", server.host, server.port, database, server.superuser, server.password or ""
    )
    return Side(direct, replace(direct, user=PIPELINE_USER, password=_PASSWORD), server)


def behind_proxy(stack: ExitStack, side: Side, seed: int) -> Side:
    """The side, reached by the pipeline through a proxy; ``seed`` is of the proxy's choices."""
    proxy = TcpProxy(side.direct.host, side.direct.port, kind=side.direct.kind, seed=seed)
    stack.enter_context(proxy)
    return replace(side, via=replace(side.via, host=proxy.host, port=proxy.port), proxy=proxy)


def _followed(stack: ExitStack, folder: Path, side: Side) -> Side:
    """The side with a replica; clients reach it through a proxy as well, which leads to another server later."""
    found = follow(stack, folder / "replica", side.direct, side.server)
    front = stack.enter_context(TcpProxy(side.direct.host, side.direct.port, kind=side.direct.kind))
    direct = replace(side.direct, host=front.host, port=front.port)
    return replace(side, direct=direct, replica=found, front=front)


def _project(
    folder: Path,
    scenario: Scenario,
    found: Workload,
    source: Side,
    target: Side,
    batch_rows: int,
    zookeeper: ZooKeeperSide | None,
    spark: dict[str, object],
) -> Path:
    """Copies the workload's project, with small chunks."""
    config = make_project(folder / "project", source.via, target.via, found.project, MIGRATION)
    defaults = {**small_steps(scenario.workload.keys, batch_rows), "spark": spark}
    for side, variable in _PASSWORD_VARIABLES.items():
        defaults[side] = {"password_env": variable}
    if zookeeper is not None:
        defaults["coordination"] = {
            "hosts": f"{zookeeper.proxy.host}:{zookeeper.proxy.port}",
            "session_s": zookeeper.settings.session_s,
            "shared_event_log": True,
        }
    try:
        document = merged(merged(tomllib.loads(config.read_text()), defaults), scenario.settings)
        config.write_text(toml_text(document))
    except (TypeError, AttributeError) as error:
        raise MigratorError(
            "the scenario's settings are no sections of settings", where=scenario.name, cause=str(error)
        ) from error
    return config


def small_steps(keys: int, batch_rows: int) -> dict[str, dict[str, object]]:
    """Settings with small chunks, so that even the dump of a table of so many rows has several of them."""
    rows = max(_LEAST_CHUNK_ROWS, keys // _CHUNKS)
    return {
        "capture": {
            "chunk_rows": rows,
            "chunk_rows_min": rows,
            "chunk_rows_max": rows,
            "dump_share": 1.0,  # no throttle: reads are to meet as many writes as they can
        },
        "apply": {"batch_rows": batch_rows},
    }


def batch_rows_of(seed: str) -> int:
    """Rows of a batch, chosen by a seed."""
    return random.Random(seed).choice(_BATCH_ROWS)


def direct(settings: configuration.Settings, source: Database, target: Database) -> configuration.Settings:
    """The same project without proxies, as the superusers."""

    def straight(server: Server, to: Database) -> Server:
        return replace(server, host=to.host, port=to.port, user=to.user, password=to.password or None)

    return replace(
        settings, source=straight(settings.source, source), target=straight(settings.target, target)
    )
