"""Mutants of the way back: what may be turned round (``transforms.reverse``), and what is told of rows that came
back."""

from __future__ import annotations

from scenarios.mutants.in_code.change import mutants_of

_DERIVED = ("tests/integration/reverse/test_derived.py",)
_COMPARED = ("tests/unit/transforms/test_reverse_compare.py",)

WAY_BACK = (
    *mutants_of(
        "transforms/reverse/compare.py", _COMPARED,
        ("NULL came back as an empty text", "    return list(column.to_pylist())\n\n\ndef _keys", "    return [value or '' for value in column.to_pylist()]\n\n\ndef _keys"),
        ("floats are compared as numbers", "    if pa.types.is_floating(column.type):\n", "    if False:\n"),
        ("case doesn't count", "    return list(column.to_pylist())\n\n\ndef _keys", "    return [v.lower() if isinstance(v, str) else v for v in column.to_pylist()]\n\n\ndef _keys"),
        ("blanks at the end don't count", "    return list(column.to_pylist())\n\n\ndef _keys", "    return [v.rstrip() if isinstance(v, str) else v for v in column.to_pylist()]\n\n\ndef _keys"),
        ("rows that don't come back are ignored", "tuple(names[one] for one in before if one not in place)", "()"),
        ("rows that are no old ones are ignored", "tuple(names[one] for one in times if one not in wanted and one not in others)", "()"),
        ("a row may come back twice", "number > 1 and one in wanted", "False"),
        ("other rows of a sample are extra ones", "and one not in others)", ")"),
        ("a lossy column is exact", "        changed += 1\n", "        pass\n"),
    ),
    *mutants_of(
        "migrator/run/commands/carried_back.py", _COMPARED,
        ("a loss is accepted unasked", "return self.fatal or (self.fate is Fate.LOSSY and not self.accepted)", "return self.fatal"),
        ("a loss of another column is accepted", 'f"{trip.table}.{column.name}" in accepted)', "bool(accepted))"),
        ("a column without a default is left", "if not column.has_default and not column.nullable:", "if False:"),
        ("a column of which nothing was compared is exact", "cells is None or not trip.compared.rows:", "cells is None:"),
        ("a lossy column is told as exact", "    if not cells.changed:\n", "    if True:\n"),
    ),
    *mutants_of(
        "migrator/run/commands/round_trip.py", _COMPARED,
        ("nothing compared is exact", "        if found is None:\n            return False\n", "        if found is None:\n            return True\n"),
        ("missing rows are exact", "return not (differs or found.missing or", "return not (differs or"),
    ),
    *mutants_of(
        "transforms/reverse/numbers.py", _DERIVED,
        ("rounding keeps every value", "if step is None or blur.amount + _DIVIDED >= step / 2:", "if step is None:"),
        ("what was rounded comes back off by a little", "    return f\"F.round({bare}, {found[1] if found else 0})\"", "    return code"),
        ("what is cut off isn't lost", "    return inner, code, blur.more(unit * cut)\n", "    return inner, code, blur\n"),
        ("a long is exact as a double", "(whole_digits(type_of(inner)) or _MOST_DIGITS + 1) <= _MOST_DIGITS", "True"),
    ),
    *mutants_of(
        "transforms/reverse/invert.py", _DERIVED,
        ("two values that became one come back as the first", "len(set(news)) != len(news)", "False"),
        ("every cast is exact", "        if not exact:\n", "        if False:\n"),
        ("blanks that no server pads come back", "if column.padded and len(one.children) == 1:", "if True:"),
        ("values that no case names are silent", 'return value if covered else value.noted("values that', 'return value if True else value.noted("values that'),
        ("what stands for NULL is silent", 'value = value.noted(f"NULL comes back as {literal(others[0])}")', "pass"),
        ("what became NULL is silent", 'value.noted(f"{literal(other)} comes back as NULL")', "value"),
        ("flags beyond 0 and 1 are silent", 'value = value.noted("numbers other than 0 and 1 come back as one of them")', "pass"),
    ),
    *mutants_of(
        "transforms/reverse/joined_texts.py", _DERIVED,
        ("one text may run into another", "    if patterns.count(_ANY) > 1:\n", "    if False:\n"),
        ("a number may run into the next one", "if bounded and isinstance(after, str) and after[0] in _LETTERS:", "if False:"),
    ),
    *mutants_of(
        "transforms/reverse/pieces.py", _DERIVED,
        ("what try_cast loses comes back", 'tries = "try_" in str(one.sql()).lower()', "tries = False"),
        ("two hashes are one", 'f"0x{written[place]}" if known', '"0x" if known'),
    ),
    *mutants_of(
        "transforms/reverse/candidates.py", _DERIVED,
        ("rows of another old table come back as well", "            if condition is None:\n                return None\n", "            if condition is None:\n                continue\n"),
        ("a key of one kind is looked up as one of another", 'return (piece.surrogates or {}).get(name, ""), _anonymous(expression)', "return name, _anonymous(expression)"),
    ),
    *mutants_of(
        "transforms/reverse/derive.py", _DERIVED,
        ("parts that may overlap are united", "one is not best and all(", "one is not best or all("),
        ("rows that are elsewhere are silent", "if not one.part.rows or any(complete(", "if True or any(complete("),
        ("parts are joined by what is made otherwise", "if theirs == expression]", "]"),
    ),
)  # fmt: skip
