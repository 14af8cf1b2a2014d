"""The behaviour of a mapping function, read from its analysed plan.

A function is *row-wise* when it distributes over bags of rows, ``f(A + B) = f(A) + f(B)``, for all its
source tables: then its before and after images of just the changed rows keep the target in step.
"""

from __future__ import annotations

import difflib
import enum
import traceback
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from migrator.errors import MappingError
from migrator.model.reach import Node, Reach, Reference
from migrator.model.table import TableSchema
from migrator.model.target import TargetColumn
from transforms.analysis.grain import reaches
from transforms.analysis.grain_numbers import check_grain
from transforms.analysis.grain_values import check_links, check_values
from transforms.analysis.row_wise import PlanWalk, columns_read
from transforms.casts import cast_problem, spark_type
from transforms.cause import spark_cause
from transforms.declared_grain import GrainProblem
from transforms.frames import marked_frame
from transforms.gaps import METADATA
from transforms.registry import TargetMapping
from transforms.sql_query import SqlQuery

_DECLARE = (
    'declare what a target row depends on, e.g. grain="orders.order_id", or in SQL '
    "`-- grain: orders.order_id` (docs/how-to/mapping/joined-mappings.md), "
    "or write it row-wise, each target row from one source row"
)
_WHOLE = (
    "which rows it keeps must follow from the rows of one grain alone, not from the order or number of all rows: "
    "use row_number() over the grain's columns, min_by or max_by, and constants from dbmigrator.frames"
)


class MappingKind(enum.Enum):
    """The two ways in which a target is kept in step with its sources."""

    ROW_WISE = "row-wise"
    GRAIN = "joined"


@dataclass(frozen=True, slots=True)
class MappingPlan:
    """A checked target mapping.

    Attributes:
        target: the mapping as declared.
        kind: how changes are carried over.
        columns: target columns the function writes, in the target's own order.
        schemas: schema of every source table of the function, by table name.
        reads: columns read of each source table, by table name, in the source's order; a table that the
            function ignores is absent. A change to any other column can't change the target.
        reaches: the reach of each grain of a joined target; empty for a row-wise one.
        repeated: source tables that the function reads more than once.
        kept: the fingerprint under which an earlier start has kept the plan; empty where this process analysed it.
    """

    target: TargetMapping
    kind: MappingKind
    columns: tuple[TargetColumn, ...]
    schemas: Mapping[str, TableSchema]
    reads: Mapping[str, tuple[str, ...]]
    reaches: tuple[Reach, ...] = ()
    repeated: tuple[str, ...] = ()
    kept: str = ""


@dataclass(frozen=True, slots=True)
class _Problem:
    what: str
    cause: str
    remedy: str


def analyse(
    spark: SparkSession,
    target: TargetMapping,
    schemas: Mapping[str, TableSchema],
    columns: Sequence[TargetColumn],
    references: Sequence[Reference] = (),
) -> MappingPlan:
    """Calls the function on empty sources and checks what it would do; runs no Spark job itself.

    Args:
        spark: a running session.
        target: the mapping to check.
        schemas: source tables by name, at least those of ``target.sources``.
        columns: all columns of the target table.
        references: foreign keys between source tables, for functions with a grain.

    Raises:
        MappingError: all problems found, together.
    """
    used = {name: schemas[name] for name in target.sources if name in schemas}
    absent = [name for name in target.sources if name not in schemas]
    if absent:
        raise _error(target, [_no_source(target, name, schemas) for name in absent])
    sources: dict[int, str] = {}
    marker = f"source of {target.name} {uuid.uuid4()}"
    frames = {}
    for name, schema in used.items():
        frames[name], leaf = marked_frame(spark, schema, marker)
        sources[leaf] = name
    result, jobs = _call_watched(spark, target, frames)
    walk = PlanWalk(sources, marker)
    walk.visit(result._jdf.queryExecution().analyzed())
    joined = target.grain is not None and bool(walk.grains)
    repeated = _repeated(walk)
    found, unlinked = _reaches(spark, target, used, between(references, repeated)) if joined else ((), [])
    problems = [
        *_job_problems(jobs),
        *_grain_problems(target, walk),
        *unlinked,
        *_column_problems(target, result, columns),
    ]
    if problems:
        raise _error(target, problems)
    written = set(result.columns)
    return MappingPlan(
        target=target,
        kind=MappingKind.GRAIN if joined else MappingKind.ROW_WISE,
        columns=tuple(column for column in columns if column.name in written),
        schemas=used,
        reads=_reads(result, sources, used),
        reaches=found,
        repeated=repeated,
    )


def columns_used(
    spark: SparkSession, target: TargetMapping, schemas: Mapping[str, TableSchema]
) -> dict[str, tuple[str, ...]]:
    """Returns the columns of each source table that the function reads; see ``MappingPlan.reads``. Runs no job.

    Raises ``MappingError``: the function fails when called.
    """
    sources: dict[int, str] = {}
    marker, frames = f"columns of {target.name} {uuid.uuid4()}", {}
    for name in target.sources:
        frames[name], leaf = marked_frame(spark, schemas[name], marker)
        sources[leaf] = name
    return _reads(call(target, frames), sources, {name: schemas[name] for name in target.sources})


def depends_on(
    spark: SparkSession,
    target: TargetMapping,
    schemas: Mapping[str, TableSchema],
    references: Sequence[Reference],
) -> tuple[Reach, ...]:
    """Returns what each target row is made of: a joined mapping's reaches; for a row-wise one, each table by itself.

    Args: see ``analyse``. Runs no job.

    Raises:
        MappingError: the function fails when called.
        GrainProblem: the mapping is neither row-wise nor joined, or its reach can't be derived.
    """
    sources: dict[int, str] = {}
    marker, frames = f"what makes {target.name} {uuid.uuid4()}", {}
    for name in target.sources:
        frames[name], leaf = marked_frame(spark, schemas[name], marker)
        sources[leaf] = name
    walk = PlanWalk(sources, marker)
    walk.visit(call(target, frames)._jdf.queryExecution().analyzed())
    if not walk.grains:
        return tuple(Reach((), (Node(name, schemas[name]),)) for name in target.sources)
    if target.grain is None:
        raise GrainProblem(f"it has {walk.grains[0]} and no grain", "", _DECLARE)
    return reaches(target, schemas, between(references, _repeated(walk)))


def between(references: Sequence[Reference], repeated: Sequence[str]) -> list[Reference]:
    """The references without those of a table to itself, if the plan reads the table once: no join is with itself."""
    return [one for one in references if one.child != one.parent or one.child.name in repeated]


def _repeated(walk: PlanWalk) -> tuple[str, ...]:
    return tuple(sorted(name for name, times in walk.tables.items() if times > 1))


def call(target: TargetMapping, frames: Mapping[str, DataFrame]) -> DataFrame:
    """Calls the user's function with one frame per source, in its order.

    Raises:
        MappingError: the function raises, refers to an unknown column or table, or returns no DataFrame.
    """
    try:
        result: object = target.function(*(frames[name] for name in target.sources))
    except MappingError:
        raise
    except Exception as error:
        raise _call_error(target, error) from error
    if not isinstance(result, DataFrame):
        raise MappingError(
            f"the function of target table {target.name!r} returns no DataFrame",
            where=target.where(),
            cause=f"it returns {'nothing' if result is None else type(result).__name__}",
            remedy="return the DataFrame of the target's rows; is a `return` missing?",
        )
    return result


def _call_error(target: TargetMapping, error: Exception) -> MappingError:
    where = _where(target, error)
    unknown = ("UNRESOLVED_COLUMN", "ATTRIBUTE_NOT_SUPPORTED")
    if isinstance(error, PySparkException) and (error.getCondition() or "").startswith(unknown):
        named = error.getMessageParameters() or {}
        column = str(named.get("objectName") or named.get("attr_name") or "?").replace("`", "")
        near = str(named.get("proposal", "")).replace("`", "")
        return MappingError(
            f"the mapping of target table {target.name!r} refers to the unknown column {column!r}",
            where=where,
            cause=spark_cause(error),
            remedy=f"name an existing column{f', perhaps {near}' if near else ''}",
        )
    return MappingError(
        f"the mapping of target table {target.name!r} fails when called",
        where=where,
        cause=spark_cause(error),
        remedy="correct the line; it is called with DataFrames and must return one without running it",
    )


def _where(target: TargetMapping, error: Exception) -> str:
    if isinstance(target.function, SqlQuery):
        return target.function.where_failing(error)
    code = getattr(target.function, "__code__", None)
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if code is not None and frame.filename == code.co_filename]
    return f"{target.where()}, line {lines[-1]}" if lines else target.where()


def _call_watched(
    spark: SparkSession, target: TargetMapping, frames: Mapping[str, DataFrame]
) -> tuple[DataFrame, int]:
    """Calls the function and counts the Spark jobs it runs.

    A function that collects rows and goes on with the result has no trace of that in its plan, and would turn
    source rows into constants.
    """
    context = spark.sparkContext
    group = f"analysis {uuid.uuid4()}"
    context.setJobGroup(group, f"analysis of {target.name}")
    try:
        result = call(target, frames)
    finally:
        context._jsc.clearJobGroup()
    context._jsc.sc().listenerBus().waitUntilEmpty()
    return result, len(context.statusTracker().getJobIdsForGroup(group))


def _job_problems(jobs: int) -> Iterator[_Problem]:
    if jobs:
        yield _Problem(
            "the function runs queries itself",
            f"it ran {jobs} Spark job(s) while being called (collect, count, toPandas, cache+count, ...)",
            "only describe the rows; join, filter and derive instead of collecting",
        )


def _grain_problems(target: TargetMapping, walk: PlanWalk) -> Iterator[_Problem]:
    if target.grain is None and walk.grains:
        never = walk.never == walk.grains
        remedy = _WHOLE if never else _DECLARE
        yield _Problem("it is neither row-wise nor has it a grain", "; ".join(walk.grains), remedy)
    elif walk.never:
        yield _Problem("it can't be kept in step change by change", "; ".join(walk.never), _WHOLE)
    elif not walk.tables:
        yield _Problem(
            "it reads none of its source tables",
            f"no row of {', '.join(target.sources)} reaches the result",
            "derive the rows from a source table; put constant rows into the target's Alembic revision",
        )
    if walk.unrepeatable:
        yield _Problem(
            "it makes other values each time it runs",
            f"uses {', '.join(walk.unrepeatable)}",
            "derive the value from source columns (columns.uuid5 makes stable ids), or let the target's "
            "column default fill it: replays and the verifier must get the same rows",
        )


def _reaches(
    spark: SparkSession,
    target: TargetMapping,
    schemas: Mapping[str, TableSchema],
    references: Sequence[Reference],
) -> tuple[tuple[Reach, ...], list[_Problem]]:
    try:
        check_values(spark, target, schemas)
        found = reaches(target, schemas, references)
        check_links(spark, target, schemas, found)
        for reach in found:
            if not reach.grain:
                check_grain(spark, target, reach, schemas)
        return found, []
    except GrainProblem as problem:
        return (), [_Problem(problem.what, problem.cause, problem.remedy)]


def _column_problems(
    target: TargetMapping, result: DataFrame, columns: Sequence[TargetColumn]
) -> Iterator[_Problem]:
    by_name = {column.name: column for column in columns}
    names = result.columns
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield _Problem(f"it produces column {name!r} twice", "", "rename or drop one of them")
    for field in result.schema.fields:
        if METADATA in field.metadata:
            what = f"column {field.name!r} is a gap, not mapped yet"
            yield _Problem(what, str(field.metadata[METADATA]), f"write {field.name} in place of gap(...)")
            continue
        column = by_name.get(field.name)
        if column is None:
            yield _unknown(field.name, by_name)
        elif column.generated:
            cause = "the target generates it and accepts no value"
            yield _Problem(f"it writes the generated column {field.name!r}", cause, "drop it from the result")
        elif (reason := cast_problem(field.dataType, spark_type(column.spark_type))) is not None:
            what = f"column {field.name!r} has a type that would change its values"
            yield _Problem(what, reason.partition("; ")[0], reason.partition("; ")[2])
    for name in target.key:
        if name not in names:
            yield _Problem(f"it does not produce the key column {name!r}", "", "add it to the result")
    for column in columns:
        missing = column.name not in names and column.name not in target.key
        if missing and not (column.nullable or column.has_default or column.generated):
            cause = "the target's column is NOT NULL and has no default"
            yield _Problem(f"it does not produce column {column.name!r}", cause, "add it to the result")


def _unknown(name: str, known: Mapping[str, TargetColumn]) -> _Problem:
    near = [other for other in known if other.lower() == name.lower()] or difflib.get_close_matches(
        name, known
    )
    remedy = (
        f"did you mean {near[0]!r}?" if near else "drop it, or add it to the target in an Alembic revision"
    )
    return _Problem(f"it produces column {name!r}, which the target does not have", "", remedy)


def _no_source(target: TargetMapping, name: str, schemas: Mapping[str, TableSchema]) -> _Problem:
    near = difflib.get_close_matches(name, schemas)
    remedy = (
        f"did you mean {near[0]!r}?" if near else f"name one of {', '.join(sorted(schemas)) or 'the tables'}"
    )
    return _Problem(
        f"the source has no table {name!r}",
        f"named in {target.where_named(name)}; a mapping reads tables of the source",
        remedy,
    )


def _error(target: TargetMapping, problems: Sequence[_Problem]) -> MappingError:
    if len(problems) == 1:
        [problem] = problems
        what = f"target table {target.name!r} can't be mapped: {problem.what}"
        return MappingError(what, where=target.where(), cause=problem.cause, remedy=problem.remedy)
    numbered = list(enumerate(problems, 1))
    return MappingError(
        f"target table {target.name!r} can't be mapped: {len(problems)} problems",
        where=target.where(),
        cause="; ".join(f"({n}) {p.what}{': ' if p.cause else ''}{p.cause}" for n, p in numbered),
        remedy="; ".join(f"({n}) {p.remedy}" for n, p in numbered),
    )


def _reads(
    result: DataFrame, sources: dict[int, str], schemas: Mapping[str, TableSchema]
) -> dict[str, tuple[str, ...]]:
    read = columns_read(result._jdf.queryExecution().optimizedPlan(), sources)
    return {
        name: tuple(column for index, column in enumerate(schema.names()) if index in read[name])
        for name, schema in schemas.items()
        if name in read
    }
