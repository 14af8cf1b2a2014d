"""Equality of texts on the old server: the rules of MySQL's and MariaDB's collations, character by character.

A weight is the character that stands for all that count as the same, as the servers' own WEIGHT_STRING tells it.
"""

from __future__ import annotations

from collections.abc import Iterator

from migrator.errors import MappingError

# first character[+how many][/step]:its weight[/step of the weights]; characters and weights are hexadecimal.
# Characters that are their own weight are left out.
_GENERAL_CI = (
    "61+26:41 B5:39C C0+6:41/0 C7+2:43/2 C9+3:45/0 CC+4:49/0 D1+2:4E D3+4:4F/0 D9+4:55/0 DD:59 DF:53 E0+6:41/0 "
    "E6:C6 E7+2:43/2 E9+3:45/0 EC+4:49/0 F0:D0 F1+2:4E F3+4:4F/0 F8:D8 F9+4:55/0 FD+2/2:59/0 FE:DE 100+6:41/0 "
    "106+8:43/0 10E+2:44/0 111:110 112+10:45/0 11C+8:47/0 124+2:48/0 127:126 128+10:49/0 133:132 134+2:4A/0 "
    "136+2:4B/0 139+6:4C/0 140+2/2:13F/2 143+6:4E/0 14B:14A 14C+6:4F/0 153:152 154+6:52/0 15A+8:53/0 162+4:54/0 "
    "167:166 168+12:55/0 174+2:57/0 176+3:59/0 179+6:5A/0 17F:53 183+2/2:182/2 188:187 18C:18B 192:191 195:1F6 "
    "199:198 1A0+2:4F/0 1A3+2/2:1A2/2 1A8:1A7 1AD:1AC 1AF+2:55/0 1B4+2/2:1B3/2 1B9:1B8 1BD:1BC 1BF:1F7 "
    "1C5+2:1C4/0 1C8+2:1C7/0 1CB+2:1CA/0 1CD+2:41/0 1CF+2:49/0 1D1+2:4F/0 1D3+10:55/0 1DD:18E 1DE+4:41/0 "
    "1E2+2:C6/0 1E5:1E4 1E6+2:47/0 1E8+2:4B/0 1EA+4:4F/0 1EE+2:1B7/0 1F0:4A 1F2+2:1F1/0 1F4+2:47/0 1F8+2:4E/0 "
    "1FA+2:41/0 1FC+2:C6/0 1FE+2:D8/0 200+4:41/0 204+4:45/0 208+4:49/0 20C+4:4F/0 210+4:52/0 214+4:55/0 "
    "218+2:53/0 21A+2:54/0 21D:21C 21E+2:48/0 223+2/2:222/2 226+2:41/0 228+2:45/0 22A+8:4F/0 232+2:59/0 253:181 "
    "254:186 256+2:189 259+2/2:18F 260:193 263:194 268:197 269:196 26F:19C 272:19D 275:19F 280:1A6 283:1A9 "
    "288:1AE 28A+2:1B1 292:1B7 345:399 386:391 388+3:395/2 38C:39F 38E:3A5 38F:3A9 390:399 3AA:399 3AB:3A5 "
    "3AC:391 3AD+3:395/2 3B0:3A5 3B1+17:391 3C2+2:3A3/0 3C4+6:3A4 3CA:399 3CB+2/2:3A5/0 3CC:39F 3CE:3A9 3D0:392 "
    "3D1:398 3D3+2:3D2/0 3D5:3A6 3D6:3A0 3DB+11/2:3DA/2 3F0:39A 3F1+2:3A1/2 400+2:415/0 403:413 407:406 40C:41A "
    "40D:418 40E:423 430+32:410 450+2:415/0 452+5/2:402/2 453:413 455+2/2:405 459+2/2:409/2 45C:41A 45D:418 "
    "45E:423 45F:40F 461+11/2:460/2 476+2:474/0 479+5/2:478/2 48D+26/2:48C/2 4C1+2:416/0 4C4:4C3 4C8:4C7 4CC:4CB "
    "4D0+4:410/0 4D5:4D4 4D6+2:415/0 4D9+3:4D8/0 4DC+2:416/0 4DE+2:417/0 4E1:4E0 4E2+4:418/0 4E6+2:41E/0 "
    "4E9+3:4E8/0 4EC+2:42D/0 4EE+6:423/0 4F4+2:427/0 4F8+2:42B/0 561+38:531 1E00+2:41/0 1E02+6:42/0 1E08+2:43/0 "
    "1E0A+10:44/0 1E14+10:45/0 1E1E+3/2:46 1E1F+3/2:46 1E24+8:48/0 1E2C+4:49/0 1E30+6:4B/0 1E36+8:4C/0 "
    "1E3E+6:4D/0 1E44+8:4E/0 1E4C+8:4F/0 1E54+4:50/0 1E58+8:52/0 1E60+10:53/0 1E6A+8:54/0 1E72+10:55/0 "
    "1E7C+4:56/0 1E80+10:57/0 1E8A+4:58/0 1E8E+2:59/0 1E90+6:5A/0 1E96:48 1E97:54 1E98+2:57/2 1E9B:53 "
    "1EA0+24:41/0 1EB8+16:45/0 1EC8+4:49/0 1ECC+24:4F/0 1EE4+14:55/0 1EF2+8:59/0 1F00+16:391/0 1F10+6:395/0 "
    "1F18+6:395/0 1F20+16:397/0 1F30+16:399/0 1F40+6:39F/0 1F48+6:39F/0 1F50+8:3A5/0 1F59+4/2:3A5/0 1F60+16:3A9/0 "
    "1F70:391 1F71:1FBB 1F72+3/2:395/2 1F73+2/2:1FC9/2 1F77:1FDB 1F78:39F 1F79:1FF9 1F7A:3A5 1F7B:1FEB 1F7C:3A9 "
    "1F7D:1FFB 1F80+16:391/0 1F90+16:397/0 1FA0+16:3A9/0 1FB0+7/2:391/0 1FB1+2/2:391/0 1FB7+2/2:391/0 1FBE:399 "
    "1FC2+3:397/0 1FC6+2:397/0 1FC8+2/2:395/2 1FCC:397 1FD0+3:399/0 1FD6+5:399/0 1FE0+3:3A5/0 1FE4+2:3A1/0 "
    "1FE6+5:3A5/0 1FEC:3A1 1FF2+3:3A9/0 1FF6+2:3A9/0 1FF8:39F 1FFA+2/2:3A9/0 2170+16:2160 24D0+26:24B6 "
    "FF41+26:FF21 "
)
_LATIN1_SWEDISH_CI = (
    "61+26:41 C0+4:41/0 C4+2/2:5C/0 C5:5B C7+2:43/2 C9+3:45/0 CC+4:49/0 D0:44 D1+2:4E D3+3:4F/0 D6:5D D9+3:55/0 "
    "DC+2:59/0 E0+4:41/0 E4+2/2:5C/0 E5:5B E7+2:43/2 E9+3:45/0 EC+4:49/0 F0:44 F1+2:4E F3+3:4F/0 F6:5D F8:D8 "
    "F9+3:55/0 FC+2:59/0 FE:DE "
)
_WEIGHTS = {
    "utf8mb4_general_ci": _GENERAL_CI,
    "utf8mb3_general_ci": _GENERAL_CI,
    "utf8_general_ci": _GENERAL_CI,
    "latin1_swedish_ci": _LATIN1_SWEDISH_CI,
}


def weights(collation: str) -> tuple[str, str]:
    """Characters, and the weight of each. Raises ``MappingError`` for a collation whose rules aren't known here."""
    if collation not in _WEIGHTS:
        raise MappingError(
            f"the rules of the collation {collation!r} are not known",
            cause=f"known are {', '.join(_WEIGHTS)}",
            remedy="write the rule that the data needs: lower_ascii, F.lower, F.rtrim",
        )
    characters, found = zip(*_pairs(_WEIGHTS[collation]), strict=True)
    return "".join(characters), "".join(found)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for run in text.split():
        (first, number, step), (weight, _, up) = map(_run, run.split(":"))
        for n in range(number):
            yield chr(first + n * step), chr(weight + n * up)


def _run(text: str) -> tuple[int, int, int]:
    head, _, step = text.partition("/")
    first, _, number = head.partition("+")
    return int(first, 16), int(number or 1), int(step or 1)
