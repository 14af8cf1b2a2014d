"""The text of ``reverse.py``: a function for each old table, in words that a stranger reads. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

from transforms.python_source import column_literal, identifier, key_literal, prose, skeleton, text_literal
from transforms.reverse.derive import Part, Reverse

OPEN = "TODO not carried"
"""Begins the line of a column that no function fills: ``check --reverse`` tells the same of it."""
_WIDTH = 100
_MOST_REASONS = 2
_CALLS = ("flag", "instant", "mysql_date", "mysql_datetime")
_TAKEN = frozenset({"mapping", "F", "DataFrame", "Column", "Mapping", "Decimal", "mapped", *_CALLS})
_MAPPED = '''
def mapped(value: Column, values: dict[object, object]) -> Column:
    """The old value for each new one; NULL for any other."""
    found = F.lit(None)
    for new, old in values.items():
        found = F.when(value == new, F.lit(old)).otherwise(found)
    return found
'''


def reverse_text(found: Sequence[Reverse], sources: Mapping[str, Sequence[str]]) -> str:
    """``reverse.py``.

    Args:
        found: the reverse of each old table.
        sources: new tables by name, each with its columns: for skeletons.
    """
    bodies = [_body(one, sources) for one in found]
    text = "\n\n\n".join("\n".join(body) for body in bodies)
    maps = {
        name: values
        for one in found
        for part in (*one.bases, *one.joined)
        for value in part.restored.values()
        for name, values in value.maps.items()
    }
    calls = [name for name in _CALLS if re.search(rf"(?m)^(?!\s*#).*\b{name}\(", text)]
    used = re.search(r"(?m)^(?!\s*#).*\bF\.", text) is not None or bool(maps)
    frames = re.search(r"(?m)^(?!\s*#).*\bDataFrame\b", text) is not None
    spark = [*(["Column"] if maps else []), *(["DataFrame"] if frames else [])]
    decimals = "Decimal(" in text or any("Decimal(" in old for one in maps.values() for _, old in one)
    lines = [
        '"""The way back: old tables made from the new ones. By `migrator init --reverse`: read it.',
        "",
        f"`migrator check --reverse` tries it on your rows. A line `{OPEN}` names what no function",
        "fills: old rows keep their value there, new ones get the column's default.",
        '"""',
        "",
        *(["from decimal import Decimal", ""] if decimals else []),
        "from dbmigrator import Mapping",
        *([f"from dbmigrator.columns import {', '.join(calls)}"] if calls else []),
        *([f"from pyspark.sql import {', '.join(spark)}"] if spark else []),
        *(["from pyspark.sql import functions as F"] if used else []),
        "",
        "mapping = Mapping()",
        *([""] if maps else []),
        *(line for name, values in sorted(maps.items()) for line in _map(name, values)),
        *(["", _MAPPED.rstrip()] if maps else []),
    ]
    return "\n".join([*lines, "", "", text]).rstrip() + "\n"


def _map(name: str, values: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{name} = {{", *(f"    {new}: {old}," for new, old in values), "}"]


def _body(one: Reverse, sources: Mapping[str, Sequence[str]]) -> list[str]:
    if not one.bases:
        return _skeleton(one, sources)
    name, word = one.old.id.name, identifier(one.old.id.name, _TAKEN)
    tables = [*one.bases, *one.joined]
    parameters = {part.table: identifier(part.table, _TAKEN) for part in tables}
    options = [text_literal(name), f"key={key_literal(one.old.key)}"]
    if one.joined:
        options += _grain(one)
    if any(parameter != table for table, parameter in parameters.items()):
        options.append(f"sources=[{', '.join(map(text_literal, parameters))}]")
    taken = ", ".join(f"{parameter}: DataFrame" for parameter in parameters.values())
    origins = ", ".join(prose(table) for table in parameters)
    lines = [
        *_call("@mapping.target", options),
        *_signature(word, taken),
        f'    """Rows of {prose(name)} from {origins}."""',
        *_comment("    ", [f"{note}." for note in one.notes]),
    ]
    if len(one.bases) > 1:
        lines += _united(one, parameters)
    else:
        lines += _single(one, parameters, sources)
    return lines


def _single(one: Reverse, parameters: Mapping[str, str], sources: Mapping[str, Sequence[str]]) -> list[str]:
    [base] = one.bases
    lines, rows = [], parameters[base.table]
    values = {name: [(value.code, value.notes)] for name, value in base.restored.items()}
    if base.where:
        lines.append(f"    rows = {rows}{_where(base)}")
        rows = "rows"
    taken = {name.lower() for name in sources.get(base.table, ())}
    for role, part in _roles(one):
        more = f"of_{identifier(role, ())}"
        aliases = _aliases(part, taken)
        lines += _selected(more, part, parameters[part.table], aliases)
        on = ", ".join(text_literal(ours) for _, ours in part.links)
        lines.append(f'    rows = {rows}.join({more}, [{on}], "left")')
        rows = "rows"
        for name, value in part.restored.items():
            code = f"F.col({text_literal(aliases[name])})"
            known = values.get(name, [])
            kept = [] if known and name in base.restored else known
            values[name] = [*kept, (code, value.notes)]
    return [*lines, *_select(one, rows, {name: _first(found) for name, found in values.items()})]


def _aliases(part: Part, taken: set[str]) -> dict[str, str]:
    """Names for the old columns that a joined table gives: their own, unless another column is called so."""
    found = {}
    for name in part.restored:
        alias = name if re.fullmatch(r"\w+", name) else re.sub(r"\W", "_", name)
        while alias.lower() in taken:
            alias = f"{re.sub(r'[^A-Za-z0-9]', '_', part.table)}_{alias}"
        taken.add(alias.lower())
        found[name] = alias
    return found


def _first(found: Sequence[tuple[str, tuple[str, ...]]]) -> tuple[str, tuple[str, ...]]:
    if len(found) == 1:
        return found[0]
    notes = tuple(dict.fromkeys(note for _, more in found for note in more))
    return f"F.coalesce({', '.join(code for code, _ in found)})", notes


def _selected(name: str, part: Part, parameter: str, aliases: Mapping[str, str]) -> list[str]:
    lines = _comment("    ", [f"{part.table} has a row only where {part.rows}."] if part.rows else [])
    links = [
        f"F.col({column_literal(theirs)}){'' if theirs == ours else f'.alias({text_literal(ours)})'}"
        for theirs, ours in part.links
    ]
    chosen = [_called(value.code, aliases[old]) for old, value in part.restored.items()]
    lines.append(f"    {name} = {parameter}{_where(part)}.select(")
    return [*lines, *(f"        {line}," for line in [*links, *chosen]), "    )"]


def _united(one: Reverse, parameters: Mapping[str, str]) -> list[str]:
    lines, names = [], []
    shared = [
        column.name for column in one.old.columns if all(column.name in part.restored for part in one.bases)
    ]
    for number, part in enumerate(one.bases, 1):
        lines.append(f"    part_{number} = {parameters[part.table]}{_where(part)}.select(")
        for name in shared:
            lines += _column_lines(name, part.restored[name].code, part.restored[name].notes)
        lines.append("    )")
        names.append(f"part_{number}")
    first, *others = names
    lines += _comment("    ", _open_lines(one))
    return [*lines, f"    return {first}{''.join(f'.unionByName({name})' for name in others)}"]


def _select(one: Reverse, rows: str, values: Mapping[str, tuple[str, tuple[str, ...]]]) -> list[str]:
    lines = [f"    return {rows}.select("]
    for target in one.old.columns:
        if target.name in values:
            lines += _column_lines(target.name, *values[target.name])
        elif target.name in one.open:
            lines += _comment("        ", [_open(target.name, one.open[target.name])])
    return [*lines, "    )"]


def _column_lines(name: str, code: str, notes: tuple[str, ...]) -> list[str]:
    lossy = [f"lossy: {name}: {'; '.join(notes)}."] if notes else []
    return [*_comment("        ", lossy), f"        {_called(code, name)},"]


def _called(code: str, name: str) -> str:
    return code if code == f"F.col({column_literal(name)})" else f"{code}.alias({text_literal(name)})"


def _open_lines(one: Reverse) -> list[str]:
    return [_open(name, reasons) for name, reasons in one.open.items()]


def _open(name: str, reasons: Sequence[str]) -> str:
    more = f"; and {len(reasons) - _MOST_REASONS} more" if len(reasons) > _MOST_REASONS else ""
    return f"{OPEN}: {name}: {'; '.join(reasons[:_MOST_REASONS])}{more}."


def _where(part: Part) -> str:
    if not part.where:
        return ""
    conditions = [part.where[0]] if len(part.where) == 1 else [f"({one})" for one in part.where]
    return f".where({' & '.join(conditions)})"


def _grain(one: Reverse) -> list[str]:
    [base] = one.bases
    grain = [text_literal(f"{base.table}.{name}") for name in base.key]
    links = [
        text_literal(f"{role}.{theirs} = {base.table}.{ours}")
        for role, part in _roles(one)
        for theirs, ours in part.links
    ]
    whole = grain[0] if len(grain) == 1 else f"[{', '.join(grain)}]"
    more = {role: part.table for role, part in _roles(one) if role != part.table}
    roles = ", ".join(f"{text_literal(role)}: {text_literal(table)}" for role, table in more.items())
    return [f"grain={whole}", f"links=[{', '.join(links)}]", *([f"roles={{{roles}}}"] if more else [])]


def _roles(one: Reverse) -> list[tuple[str, Part]]:
    """The joined tables, each with a name of its own: a table may take part more than once."""
    taken = {part.table for part in (*one.bases, *one.joined)}
    met, found = {part.table for part in one.bases}, []
    for part in one.joined:
        role, number = part.table, 1
        while role in met or (role in taken and role != part.table):
            number += 1
            role = f"{part.table}_{number}"
        met.add(role)
        found.append((role, part))
    return found


def _call(name: str, options: Sequence[str]) -> list[str]:
    line = f"{name}({', '.join(options)})"
    if len(line) <= _WIDTH:
        return [line]
    lines = [f"{name}("]
    for option in options:
        if len(option) <= _WIDTH - 8 or not option.startswith("links=["):
            lines.append(f"    {option},")
            continue
        members = option.removeprefix("links=[").removesuffix("]").split('", "')
        bare = [one.strip('"') for one in members]
        lines += ["    links=[", *(f'        "{one}",' for one in bare), "    ],"]
    return [*lines, ")"]


def _signature(word: str, taken: str) -> list[str]:
    line = f"def {word}({taken}) -> DataFrame:"
    if len(line) <= _WIDTH:
        return [line]
    return [f"def {word}(", *(f"    {one}," for one in taken.split(", ")), ") -> DataFrame:"]


def _skeleton(one: Reverse, sources: Mapping[str, Sequence[str]]) -> list[str]:
    """A function to begin with, as comments: nothing that looks finished and is a guess."""
    name = one.old.id.name
    reasons = [f"{note}." for note in one.notes]
    reasons += [f"{old}: {'; '.join(why)}." for old, why in one.open.items()]
    source = next(iter(sources), "new_table")
    words = identifier(name, _TAKEN), identifier(source, _TAKEN)
    columns = [(old.name, old.native_type) for old in one.old.columns if not old.generated]
    return [
        f"# {OPEN}: {prose(name)}: its rows don't follow from the new tables.",
        *_comment("", reasons),
        "#",
        *(f"# {line}" for line in skeleton(name, one.old.key, words, source, columns)),
    ]


def _comment(indent: str, texts: Sequence[str]) -> list[str]:
    lines = []
    for text in texts:
        for number, line in enumerate(textwrap.wrap(prose(text), _WIDTH - len(indent) - 4)):
            lines.append(f"{indent}# {'' if number == 0 else '  '}{line}")
    return lines
