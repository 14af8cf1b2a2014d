"""Functions generated for a layout that look at row images without decoding them: where they end, and their
keys."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from migrator.adapters.sources.binlog.rows.row_decoder import (
    ColumnPlan,
    Generator,
    path_with_nulls,
    straight_path,
)
from migrator.model.event import Key

Ends = Callable[[bytes, int, int], list[int]]
"""``ends(data, start, stop)``: where each of the row images that fill ``start..stop`` ends.

Raises ``IndexError`` or ``ValueError`` when they don't fill it.
"""
KeyOf = Callable[[bytes, int], Key]
"""``key(data, at)``: the canonical text of the key of the image that begins at ``at``."""
Texts = Callable[[bytes | bytearray, Sequence[tuple[int, int]]], list[str | bytes]]
"""``texts(data, spans)``: the canonical text of one column's values that stand at ``spans``."""

_MOST_PATTERNS = 1000


class _Steps(dict[int, Callable[[bytes, int], int]]):
    """Functions that step over the values of an image, by the bits of its NULLs; made when first needed."""

    def __init__(self, plans: Sequence[ColumnPlan]):
        super().__init__()
        self._plans = plans

    def __missing__(self, nulls: int) -> Callable[[bytes, int], int]:
        if len(self) >= _MOST_PATTERNS:
            self.clear()
        present = [plan for i, plan in enumerate(self._plans) if not nulls >> i & 1]
        lines = ["def step(data, at):", *(f" {line}" for line in _steps(present)), " return at"]
        names: dict[str, object] = {"from_bytes": int.from_bytes}
        exec(compile("\n".join(lines), "<step>", "exec"), names)
        step: Callable[[bytes, int], int] = names["step"]  # type: ignore[assignment]
        self[nulls] = step
        return step


def _steps(plans: Sequence[ColumnPlan]) -> list[str]:
    """Moves ``at`` behind the values of these columns: neighbours of fixed width at once."""
    lines, fixed = [], 0
    for plan in plans:
        fixed += plan.width
        if plan.prefix:
            if fixed:
                lines.append(f"at += {fixed}")
            length = "data[at]" if plan.prefix == 1 else f"from_bytes(data[at:at + {plan.prefix}], 'little')"
            lines.append(f"at += {length} + {plan.prefix}")
            fixed = 0
    return [*lines, f"at += {fixed}"] if fixed else lines


def build_ends(generator: Generator, plans: Sequence[ColumnPlan]) -> Ends:
    """The function for images of these columns."""
    width = (len(plans) + 7) // 8
    every = (1 << len(plans)) - 1
    unused = generator.name(((1 << 8 * width) - 1 ^ every).to_bytes(width, "little"))
    zeros = generator.name(bytes(width))
    source = [
        "def ends(data, at, stop):",
        " found = []",
        " add = found.append",
        " while at < stop:",
        f"  nulls = data[at:at + {width}]",
        f"  at += {width}",
        f"  if nulls == {zeros} or nulls == {unused}:",  # a server may set the bits without a column
        *(f"   {line}" for line in _steps(plans) or ["pass"]),
        "  else:",
        f"   at = {generator.name(_Steps(plans))}[from_bytes(nulls, 'little') & {every}](data, at)",
        "  add(at)",
        " if at != stop:",
        "  raise ValueError('the rows end at byte %d, the event at byte %d' % (at, stop))",
        " return found",
    ]
    ends: Ends = generator.function("ends", source)
    return ends


def build_key(generator: Generator, plans: Sequence[ColumnPlan], places: Sequence[int]) -> KeyOf:
    """The function for keys of the columns at ``places``, in that order. What stands behind them isn't looked
    at."""
    width, count = (len(plans) + 7) // 8, max(places, default=-1) + 1
    before = plans[:count]
    texts = "".join(f"{plans[place].text.format(f'c{place}')}, " for place in places)
    texts_or_nulls = "".join(f"c{place}, " for place in places)
    source = [
        "def key(data, at):",
        f" nulls = from_bytes(data[at:at + {width}], 'little') & {(1 << count) - 1}",
        f" at += {width}",
        " if not nulls:",
        *(f"  {line}" for line in straight_path(generator, before)),
        f"  return ({texts})",
        *(f" {line}" for line in path_with_nulls(generator, before)),
        f" return ({texts_or_nulls})",
    ]
    key: KeyOf = generator.function("key", source)
    return key


def build_texts(generator: Generator, plan: ColumnPlan, number: int) -> Texts:
    """The function for one column; ``number`` tells its name from others'."""
    value = "data[at:stop]"
    if plan.width and not plan.format.endswith("s"):
        value = f"{generator.name(struct.Struct('<' + plan.format).unpack_from)}(data, at)[0]"
    name = f"texts{number}"
    source = [f"def {name}(data, spans):", f" return [{plan.text.format(value)} for at, stop in spans]"]
    texts: Texts = generator.function(name, source)
    return texts
