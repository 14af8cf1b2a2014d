"""Two functions of one row-wise target, the present and the next one: the ledger says which of them is in force.

Nobody but it can: the functions are there side by side from before `migrator remap` until long after it.
"""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Mapping as MappingType
from dataclasses import replace

from migrator.errors import MappingError
from transforms.registry import Mapping, TargetMapping


def in_force(
    mapping: Mapping, switched: Collection[str], besides: MappingType[str, str] | None = None
) -> Mapping:
    """Returns the mapping as it is applied.

    Args:
        mapping: as declared.
        switched: targets that their next functions make by now.
        besides: per target whose next function fills a table beside, the name of that table.
    """
    found = Mapping()
    found.aside, found.gaps = mapping.aside, mapping.gaps
    for one in mapping.declared:
        if isinstance(one, MappingError):
            found.hold(one)
        else:
            found.add(mapping.nexts.get(one.name, one) if one.name in switched else one)
    for target, beside in (besides or {}).items():
        if target in mapping.nexts:
            found.add(replace(mapping.nexts[target], name=beside))
    found.nexts = dict(mapping.nexts)
    return found


def alone(mapping: Mapping) -> Mapping:
    """Returns the next functions alone, as if they made their targets."""
    found = Mapping()
    for one in mapping.nexts.values():
        found.add(one)
    return found


def misfit(mapping: Mapping, name: str) -> MappingError | None:
    """Returns the error for a next function that can't follow the one that makes its target now."""
    one = mapping.nexts[name]
    found = _misfit(name, next((now for now in mapping if now.name == name), None), one)
    if found is None:
        return None
    return MappingError(
        f"the next function of target table {name!r} can't follow the one that makes it",
        where=one.where(),
        cause=found[0],
        remedy=found[1],
    )


def refuse_misfit(mapping: Mapping, name: str) -> None:
    """Raises that error."""
    if error := misfit(mapping, name):
        raise error


def _misfit(name: str, now: TargetMapping | None, new: TargetMapping) -> tuple[str, str] | None:
    if now is None:
        return (
            "no function makes that table now",
            f'declare this one with @mapping.target("{name}", ...): a first mapping needs no remap',
        )
    if now.grain is not None or new.grain is not None:
        which = "the present one" if now.grain is not None else "the next one"
        return (
            f"{which} is joined (grain=), and only a row-wise target has rows of two mappings side by side",
            "edit the function that makes it instead, and follow docs/how-to/mapping/change-the-mapping.md",
        )
    for what, old, other in (
        ("key columns", now.key, new.key),
        ("source tables", tuple(sorted(now.sources)), tuple(sorted(new.sources))),
        ("surrogates", tuple(sorted(now.surrogates)), tuple(sorted(new.surrogates))),
    ):
        if old != other:
            return (
                f"its {what} are {_shown(other)}, those of the present one {_shown(old)}",
                f"give it the same {what}; or edit the present function, and follow"
                " docs/how-to/mapping/change-the-mapping.md",
            )
    return None


def _shown(values: tuple[object, ...]) -> str:
    return ", ".join(map(str, values)) or "none"
