"""Which tests of a parameters' product ``make test`` runs: so few that each value of each parameter occurs.

A test that is marked ``each_value`` is run with the whole product by ``make test-all``: those that are left out are
marked ``slow`` here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import pytest


def mark_the_others(items: Iterable[pytest.Item]) -> None:
    """Marks as slow, of each test with ``each_value``, what isn't needed to have each value once."""
    products: defaultdict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        markers = {marker.name for marker in item.iter_markers()}
        if isinstance(item, pytest.Function) and "each_value" in markers and "slow" not in markers:
            products[item.nodeid.partition("[")[0]].append(item)
    for product in products.values():
        # Values needn't be hashable; those of a parameter are the same objects in every member of its product.
        chosen = covering(
            [{name: id(value) for name, value in item.callspec.params.items()} for item in product]
        )
        for index, item in enumerate(product):
            if index not in chosen:
                item.add_marker(pytest.mark.slow)


def covering(product: Sequence[Mapping[str, int]]) -> frozenset[int]:
    """The places of few members of a product that hold each value which a parameter has in any of them.

    ``product`` holds one value (a number that stands for it) for each parameter's name. Greedy: the member with
    most new values comes next, the first of several; so the choice is the same in every process.
    """
    missing = {(name, value) for member in product for name, value in member.items()}
    chosen = set()
    while missing:
        best = max(range(len(product)), key=lambda place: (len(missing & product[place].items()), -place))
        chosen.add(best)
        missing -= product[best].items()
    return frozenset(chosen)
