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


def alone(mapping: Mapping, names: Collection[str]) -> Mapping:
    """Returns next functions alone, as if they made their targets."""
    found = Mapping()
    for name, one in mapping.nexts.items():
        if name in names:
            found.add(one)
    return found


def misfit(mapping: Mapping, name: str) -> MappingError | None:
    """Returns the error for a next function that can't follow the one that makes its target now."""
    new = mapping.nexts[name]
    now = next((one for one in mapping if one.name == name), None)
    if now is None:
        return MappingError(
            f"the next function of target table {name!r} follows none",
            where=new.where(),
            cause="no function makes that table now",
            remedy=f'declare it with @mapping.target("{name}", ...): a first mapping needs no remap',
        )
    cause = _unlike(now, new)
    if not cause:
        return None
    return MappingError(
        f"the next function of target table {name!r} can't follow the one that makes it",
        where=new.where(),
        cause=cause,
        remedy="give it the same key, source tables and surrogates, and no grain=; or edit the present function"
        " instead (docs/how-to/mapping/change-the-mapping.md)",
    )


def refuse_misfit(mapping: Mapping, name: str) -> None:
    """Raises that error."""
    if error := misfit(mapping, name):
        raise error


def _unlike(now: TargetMapping, new: TargetMapping) -> str:
    """Tells what keeps rows of two functions from standing side by side; empty: nothing."""
    if now.grain is not None or new.grain is not None:
        which = "present" if now.grain is not None else "next"
        return f"the {which} one is joined (grain=), and only a row-wise target has a table beside it"
    for what, old, other in (
        ("key columns", now.key, new.key),
        ("source tables", tuple(sorted(now.sources)), tuple(sorted(new.sources))),
        ("surrogates", tuple(sorted(now.surrogates)), tuple(sorted(new.surrogates))),
    ):
        if old != other:
            return f"its {what} are {_shown(other)}, those of the present one {_shown(old)}"
    return ""


def _shown(values: tuple[object, ...]) -> str:
    return ", ".join(map(str, values)) or "none"
