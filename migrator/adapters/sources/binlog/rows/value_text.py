"""Values of the binary log as the text the server prints for them (time zone +00:00).

The dictionaries fill themselves: a date costs one look-up once it was seen. They are emptied when they grow beyond
``_MOST``, so memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

_MOST = 200_000
_EPOCH = date(1970, 1, 1)
ZERO_MOMENT = "0000-00-00 00:00:00"


class _Texts(dict[int, str]):
    """Texts by number, made when first asked for."""

    def __init__(self, make: Callable[[int], str]):
        super().__init__()
        self._make = make

    def __missing__(self, number: int) -> str:
        if len(self) > _MOST:
            self.clear()
        text = self[number] = self._make(number)
        return text


def _packed_day(bits: int) -> str:
    """Year * 13 + month in the upper bits, day in the lower five (DATETIME)."""
    year, month = divmod(bits >> 5, 13)
    return f"{year:04d}-{month:02d}-{bits & 31:02d}"


def _packed_time(bits: int) -> str:
    return f" {bits >> 12:02d}:{bits >> 6 & 63:02d}:{bits & 63:02d}"


def _date(bits: int) -> str:
    return f"{bits >> 9:04d}-{bits >> 5 & 15:02d}-{bits & 31:02d}"


def _epoch_day(days: int) -> str:
    return str(_EPOCH + timedelta(days))


def _second_of_day(seconds: int) -> str:
    return f" {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


dates = _Texts(_date)
"""DATE: 3 bytes little-endian to ``2024-02-29``; zero and partial dates as they are."""
_packed_days = _Texts(_packed_day)
_packed_times = _Texts(_packed_time)
_epoch_days = _Texts(_epoch_day)
_seconds = _Texts(_second_of_day)


def date_text(raw: bytes) -> str:
    """DATE."""
    return dates[int.from_bytes(raw, "little")]


def datetime_text(raw: bytes) -> str:
    """DATETIME without fraction: 5 bytes, big-endian, offset 2**39."""
    bits = int.from_bytes(raw, "big") - 0x8000000000
    return _packed_days[bits >> 17] + _packed_times[bits & 0x1FFFF]


def datetime_fraction_text(digits: int) -> Callable[[bytes], str]:
    """DATETIME with ``digits`` fraction digits: 5 bytes, then the fraction."""
    fraction, shift = _fraction(digits), (digits + 1) // 2 * 8
    mask, offset = (1 << shift) - 1, 0x8000000000
    days, times, number = _packed_days, _packed_times, int.from_bytes

    def text(raw: bytes) -> str:
        value = number(raw, "big")
        bits = (value >> shift) - offset
        return days[bits >> 17] + times[bits & 0x1FFFF] + fraction(value & mask)

    return text


def timestamp_text(seconds: int) -> str:
    """TIMESTAMP without fraction: seconds since 1970, where 0 is the zero date."""
    if seconds == 0:
        return ZERO_MOMENT
    day, second = divmod(seconds, 86_400)
    return _epoch_days[day] + _seconds[second]


def timestamp_fraction_text(digits: int) -> Callable[[bytes], str]:
    """TIMESTAMP with ``digits`` fraction digits: 4 bytes big-endian, then the fraction."""
    fraction = _fraction(digits)

    def text(raw: bytes) -> str:
        seconds, part = int.from_bytes(raw[:4], "big"), int.from_bytes(raw[4:], "big")
        if seconds == 0 and part:
            return "1970-01-01 00:00:00" + fraction(part)
        return timestamp_text(seconds) + fraction(part)

    return text


def time_text(digits: int) -> Callable[[bytes], str]:
    """TIME: 3 bytes big-endian and the fraction as one signed number with an offset."""
    width = (digits + 1) // 2
    offset, shift = 0x800000 << 8 * width, 8 * width
    fraction = _fraction(digits) if digits else None

    def text(raw: bytes) -> str:
        value = int.from_bytes(raw, "big") - offset
        sign = "-" if value < 0 else ""
        value = abs(value)
        bits = value >> shift
        clock = f"{sign}{bits >> 12 & 1023:02d}:{bits >> 6 & 63:02d}:{bits & 63:02d}"
        return clock + fraction(value & (1 << shift) - 1) if fraction else clock

    return text


def _fraction(digits: int) -> Callable[[int], str]:
    """Fractions are stored with an even number of digits, printed with the declared one."""
    form = f".%0{(digits + 1) // 2 * 2}d"
    if digits % 2 == 0:
        return form.__mod__
    end = digits + 1
    return lambda value: (form % value)[:end]


def year_text(value: int) -> str:
    """YEAR: 0 is the zero year, else years since 1900."""
    return str(1900 + value) if value else "0000"


def double_text(value: float) -> str:
    """DOUBLE as the server prints it: the shortest digits that read back the same, an exponent only when long."""
    text = repr(value)
    if -1e15 < value < 1e15 and "e" not in text:
        if text[-2:] == ".0":
            return text[:-2] if value else "0"
        return text
    sign, text = ("-", text[1:]) if text[0] == "-" else ("", text)
    mantissa, _, exponent = text.partition("e")
    whole, _, part = mantissa.partition(".")
    digits = whole + part
    point = len(whole) + int(exponent or 0) - (len(digits) - len(digits.lstrip("0")))
    digits = digits.strip("0")
    if -14 <= point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if 0 < point <= 15 or len(digits) > point > 0:
        return sign + (
            digits.ljust(point, "0") if len(digits) <= point else f"{digits[:point]}.{digits[point:]}"
        )
    return f"{sign}{digits[0]}{'.' + digits[1:] if len(digits) > 1 else ''}e{point - 1}"


DIGIT_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Bytes of a group of decimal digits, by the number of digits."""


def decimal_bytes(precision: int, scale: int) -> int:
    """Length of a stored DECIMAL."""
    whole, part = divmod(precision - scale, 9), divmod(scale, 9)
    return whole[0] * 4 + DIGIT_BYTES[whole[1]] + part[0] * 4 + DIGIT_BYTES[part[1]]


def decimal_groups(precision: int, scale: int) -> list[int]:
    """Returns the number of digits in each group of a stored DECIMAL: nine, and fewer at both ends."""
    whole_groups, whole_rest = divmod(precision - scale, 9)
    part_groups, part_rest = divmod(scale, 9)
    groups = [*([whole_rest] if whole_rest else []), *[9] * whole_groups]
    return [*groups, *([9] * part_groups), *([part_rest] if part_rest else [])]


def decimal_text(precision: int, scale: int) -> Callable[[bytes], str]:
    """DECIMAL: groups of nine digits in four bytes, big-endian, shorter groups at both ends; negative:
    complement."""
    groups = decimal_groups(precision, scale)
    shift = 8 * decimal_bytes(precision, scale)
    sign_bit, ones, number, power = 1 << shift - 1, (1 << shift) - 1, "0", 10**scale
    for digits in groups:
        shift -= 8 * DIGIT_BYTES[digits]
        number = f"({number} * {10**digits} + (bits >> {shift} & {(1 << 8 * DIGIT_BYTES[digits]) - 1}))"
    # one expression for all groups instead of a loop over them; only numbers computed here reach it
    joined: Callable[[int], int] = eval(f"lambda bits: {number.replace(f'0 * {10 ** groups[0]} + ', '', 1)}")

    def text(raw: bytes) -> str:
        bits = int.from_bytes(raw, "big")
        sign = ""
        if bits & sign_bit:
            value = joined(bits ^ sign_bit)
        else:
            value = joined(bits ^ sign_bit ^ ones)
            sign = "-"
        if not scale:
            return f"{sign}{value}"
        return f"{sign}{value // power}.{value % power:0{scale}d}"

    return text


def set_text(labels: tuple[str, ...]) -> Callable[[int], str]:
    """SET: one bit a label, joined by commas."""
    texts = _Texts(lambda bits: ",".join(label for i, label in enumerate(labels) if bits >> i & 1))
    return texts.__getitem__
