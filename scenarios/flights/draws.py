"""Draws of the flights application's writers: days, and readings of weather.

``exact``: only what comes back unchanged from the new schema.
"""

from __future__ import annotations

import random
from decimal import Decimal

MPH_PER_KNOT = Decimal("1.15078")
"""The factor of the weather data: their winds are whole knots times this."""
_AROUND_CLOCK_CHANGES = ((3, 9), (3, 10), (3, 11), (11, 2), (11, 3), (11, 4))


def day(rng: random.Random, exact: bool = False) -> tuple[int, int, int]:
    """A day of 2013 other than the hot one; both days on which clocks change come up often.

    ``exact``: neither comes up, nor a day whose flights may depart on one: the times of two hours become one there.
    """
    if not exact and rng.random() < 0.05:
        return rng.choice([(2013, 3, 10), (2013, 11, 3)])
    while True:
        drawn = 2013, rng.randint(1, 12), rng.randint(1, 28)
        if not exact or drawn[1:] not in _AROUND_CLOCK_CHANGES:
            return drawn


def anything(rng: random.Random) -> dict[str, str | None]:
    """Readings as finely as the columns can hold them: metric columns are coarser."""
    return {
        "temp": rng.choice([None, f"{rng.uniform(-10, 100):.2f}"]),
        "wind_speed": rng.choice([None, "1048.36058", f"{rng.uniform(0, 60):.5f}"]),
        "wind_gust": rng.choice(["999.9", f"{rng.uniform(10, 80):.5f}"]),
        "pressure": rng.choice(["9999.9", f"{rng.uniform(980, 1040):.1f}"]),
    }


def as_instruments_do(rng: random.Random) -> dict[str, str | None]:
    """Readings as the data have them: tenths of a degree Celsius, and whole knots."""
    return {
        "temp": rng.choice([None, f"{rng.randint(-230, 380) * Decimal('0.18') + 32:.2f}"]),
        "wind_speed": rng.choice([None, "1048.36058", f"{rng.randint(0, 52) * MPH_PER_KNOT:.5f}"]),
        "wind_gust": rng.choice(["999.9", f"{rng.randint(10, 70) * MPH_PER_KNOT:.5f}"]),
        "pressure": rng.choice(["9999.9", f"{rng.uniform(980, 1040):.1f}"]),
    }
