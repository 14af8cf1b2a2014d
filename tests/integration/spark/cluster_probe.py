"""Programs of drivers on a cluster, each a process of its own: ``python -m ... NAME MASTER FOLDER CONF``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from migrator.embedded.java import java_home
from migrator.embedded.spark import EmbeddedSparkCluster
from migrator.errors import MigratorError
from transforms.on_spark.executors import check_executors
from transforms.on_spark.session import named_jvm_end, spark_session, stop_session
from transforms.on_spark.shipping import ship

OLDER = """#!{python}
import collections, runpy, sys
version = collections.namedtuple("version_info", "major minor micro releaselevel serial")
sys.version_info = version(3, 10, 0, "final", 0)
sys.argv = sys.argv[2:]  # it is called with -m and a module
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def said(work: Callable[[], object]) -> str:
    """The error's words, or what came."""
    try:
        work()
    except MigratorError as error:
        return str(error)
    return "none"


def refusals(master: str, folder: Path, conf: dict[str, str]) -> dict[str, str]:
    """What a cluster is given, and everything that it is refused for."""
    log = folder / "spark.log"
    project = folder / "project"
    project.mkdir()
    (project / "mapping.py").write_text("")
    (project / "codes.py").write_text('WHERE = "from the mapping\'s folder"\n')
    (folder / "extra.py").write_text('WHERE = "from --py-files"\n')
    spark = spark_session(master=master, conf=conf, java_home=None, log_path=log)
    ship(spark, project / "mapping.py", [], [folder / "extra.py"], folder / "code")

    def look(_: Iterable[int]) -> Iterable[tuple[str, str, str]]:
        import codes  # type: ignore[import-not-found]
        import extra  # type: ignore[import-not-found]

        import transforms.on_spark.staged

        yield Path(transforms.on_spark.staged.__file__).parents[2].name, codes.WHERE, extra.WHERE

    context = spark.sparkContext
    found = {"fine": said(lambda: check_executors(spark, folder, ["transforms.on_spark.staged"], 60))}
    found["tool"], found["mapping"], found["added"] = context.parallelize([1], 1).mapPartitions(look).first()
    found["missing module"] = said(lambda: check_executors(spark, folder, ["no_such_module"], 60))
    os.chdir(folder)
    elsewhere = Path("/proc/self/cwd")  # another folder for every process
    found["folder not shared"] = said(lambda: check_executors(spark, elsewhere, [], 60))
    found["not among these"] = said(lambda: ship(spark, project / "mapping.py", [], [log], folder / "code"))
    older = folder / "older"
    older.write_text(OLDER.format(python=sys.executable))
    older.chmod(0o755)
    python, context.pythonExec = context.pythonExec, str(older)
    found["other Python"] = said(lambda: check_executors(spark, folder, [], 60))
    context.pythonExec = "/nowhere/python"
    found["no Python"] = said(lambda: check_executors(spark, folder, [], 60))
    context.pythonExec = python
    context._jsc.sc().stop()

    def ask() -> None:
        with named_jvm_end():
            spark.range(3).count()

    found["given up"] = said(ask)
    wide = {**conf, "spark.executor.memory": "900g"}
    stop_session()
    spark = spark_session(master=master, conf=wide, java_home=None, log_path=log)
    found["no executor"] = said(lambda: check_executors(spark, folder, [], 1))
    spark.sparkContext._jsc.sc().stop()
    stop_session()
    spark = spark_session(master=master, conf=conf, java_home=None, log_path=log)
    found["again"] = str(spark.range(10).count())
    stop_session()
    return found


def nobody(master: str, folder: Path, conf: dict[str, str]) -> dict[str, str]:
    """The error of a master that isn't there."""
    log = folder / "spark.log"
    return {"error": said(lambda: spark_session(master=master, conf=conf, java_home=None, log_path=log))}


def own(_: str, folder: Path, conf: dict[str, str]) -> dict[str, str]:
    """Owns a cluster of one worker, prints the processes of it and waits to be killed."""
    with EmbeddedSparkCluster(folder / "cluster", java_home=java_home(), workers=1) as cluster:
        spark = spark_session(master=cluster.url, conf=conf, java_home=None, log_path=folder / "spark.log")
        spark.range(10).count()
        print(*cluster.pids(), *cluster.executors(), flush=True)
        sys.stdin.read()
    return {}


PROGRAMS: dict[str, Callable[[str, Path, dict[str, str]], dict[str, str]]] = {
    "refusals": refusals,
    "nobody": nobody,
    "own": own,
}

if __name__ == "__main__":
    print(json.dumps(PROGRAMS[sys.argv[1]](sys.argv[2], Path(sys.argv[3]), json.loads(sys.argv[4]))))
