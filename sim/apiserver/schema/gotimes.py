"""Why Go's time.Parse refuses a text, in its words."""

import re
from calendar import monthrange
from typing import Final

__all__ = ("time_problem",)

_USUAL: Final = re.compile(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?Z", re.ASCII
)
_DIGITS: Final = re.compile(r"[0-9]{2}", re.ASCII)
_FRACTION: Final = re.compile(r"[.,][0-9]+", re.ASCII)
_MICROS: Final = re.compile(r"[.,][0-9]{6}", re.ASCII)
_ZONE: Final = re.compile(r"Z|[+-]([0-9]{2}):([0-9]{2})", re.ASCII)
_PARTS: Final = (
    ("2006", re.compile(r"[0-9]{4}", re.ASCII)),
    ("-", re.compile("-")),
    ("01", _DIGITS),
    ("-", re.compile("-")),
    ("02", _DIGITS),
    ("T", re.compile("T")),
    ("15", re.compile(r"[0-9]{1,2}", re.ASCII)),
    (":", re.compile(":")),
    ("04", _DIGITS),
    (":", re.compile(":")),
    ("05", _DIGITS),
)
_LIMITS: Final = {"01": (1, 12, "month"), "15": (0, 23, "hour"), "04": (0, 59, "minute"), "05": (0, 59, "second")}


def time_problem(text: str, *, is_micro: bool) -> str:
    """About a metav1.Time, or a MicroTime, which has six digits behind the second; "" if it is one."""
    usual = _USUAL.fullmatch(text)
    if usual is not None and (not is_micro or len(usual[1] or "") == 7):
        return ""
    layout = "2006-01-02T15:04:05.000000Z07:00" if is_micro else "2006-01-02T15:04:05Z07:00"
    shown = text.replace("\\", "\\\\").replace('"', '\\"')
    rest, found = text, dict[str, int]()
    for name, pattern in _PARTS:
        if (match := pattern.match(rest)) is None:
            return f'parsing time "{shown}" as "{layout}": cannot parse "{rest}" as "{name}"'
        rest = rest[match.end() :]
        if match[0].isdigit():
            found[name] = int(match[0])
        low, high, what = _LIMITS.get(name, (0, 9999, ""))
        if not low <= found.get(name, low) <= high:
            return f'parsing time "{shown}": {what} out of range'
    fraction = (_MICROS if is_micro else _FRACTION).match(rest)
    if fraction is None and is_micro:
        return f'parsing time "{shown}" as "{layout}": cannot parse "{rest}" as ".000000"'
    rest = rest[fraction.end() :] if fraction is not None else rest
    zone = _ZONE.match(rest)
    if zone is None:
        return f'parsing time "{shown}" as "{layout}": cannot parse "{rest}" as "Z07:00"'
    if zone[1] and (int(zone[1]) > 24 or int(zone[2]) > 60):
        return f'parsing time "{shown}": time zone offset {"hour" if int(zone[1]) > 24 else "minute"} out of range'
    if rest := rest[zone.end() :]:
        return f'parsing time "{shown}": extra text: "{rest}"'
    # Go has a year 0, which is a leap year.
    return "" if 1 <= found["02"] <= monthrange(found["2006"] or 4, found["01"])[1] else f'parsing time "{shown}": day out of range'
