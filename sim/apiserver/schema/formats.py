"""Formats of strings that kube-apiserver checks in custom resources. Unknown formats allow everything."""

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date
from typing import Final

__all__ = ("FORMATS",)

_DATE_TIME = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-9]{2})(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})")
_GO_DURATION = re.compile(r"[-+]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)")
_WORDED = re.compile(r"([-+]?[0-9]+)\s*(ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|s|secs?|seconds?"
    r"|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?)")  # fmt: skip
_ISO_DURATION = re.compile(r"P(?=.)([0-9]+W|([0-9]+Y)?([0-9]+M)?([0-9]+D)?(T(?=.)([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]+)?S)?)?)")
_UUID = r"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{}[0-9a-f]{{3}}-?{}[0-9a-f]{{3}}-?[0-9a-f]{{12}}"
_HEX = "[0-9a-f]"
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_HOST = r"[a-zA-Z0-9\u00a1-\uffff]([a-zA-Z0-9\u00a1-\uffff-]{0,62})"
_COLOR = r"(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"


def _pattern(text: str, flags: int = 0) -> Callable[[str], bool]:
    found = re.compile(text, flags)
    return lambda value: found.fullmatch(value) is not None


def _date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10 and text[4] == "-"


def _date_time(text: str) -> bool:
    match = _DATE_TIME.fullmatch(text)
    if match is None or not _date(text[:10]):
        return False
    return int(match[4]) <= 23 and int(match[5]) <= 59 and int(match[6]) <= 59


def _duration(text: str) -> bool:
    return any(p.fullmatch(text) is not None for p in (_GO_DURATION, _WORDED, _ISO_DURATION))


def _ip(version: int) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            return ipaddress.ip_address(text).version == version and "%" not in text
        except ValueError:
            return False

    return check


def _cidr(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    _, slash, bits = text.partition("/")
    return bool(slash) and bits.isdecimal()


def _byte(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _uri(text: str) -> bool:
    """What Go's url.ParseRequestURI takes: an absolute URI or an absolute path."""
    if any(ord(c) < 0x20 or ord(c) == 0x7F for c in text):
        return False
    return text.startswith("/") or re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:", text) is not None


def _email(text: str) -> bool:
    match = re.fullmatch(r'(?:"[^"]*"|[^<>@"]*)?\s*<([^<>\s]+)>', text)
    address = match[1] if match else text
    return re.fullmatch(r"[^@\s<>(),;:\\\"\[\]]+@[^@\s<>(),;:\\\"\[\]]+", address) is not None


def _host(text: str) -> bool:
    return len(text) <= 255 and re.fullmatch(rf"({_HOST}\.)*[a-zA-Z\u00a1-\uffff][a-zA-Z0-9\u00a1-\uffff-]{{1,62}}", text) is not None


def _isbn(text: str) -> bool:
    return _isbn10(text) or _isbn13(text)


def _isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if re.fullmatch(r"[0-9]{9}[0-9X]", digits) is None:
        return False
    return sum((i + 1) * (10 if c == "X" else int(c)) for i, c in enumerate(digits)) % 11 == 0


def _isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    return re.fullmatch(r"[0-9]{13}", digits) is not None and sum(int(c) * (3 if i % 2 else 1) for i, c in enumerate(digits)) % 10 == 0


def _card(text: str) -> bool:
    digits = re.sub(r"[^0-9]", "", text)
    if not 13 <= len(digits) <= 19:
        return False
    doubled = [int(c) * (2 if i % 2 else 1) for i, c in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def _mac(text: str) -> bool:
    return any(
        re.fullmatch(p, text, re.IGNORECASE) is not None
        for size in (6, 8, 20)
        for p in (
            rf"{_HEX}{{2}}(:{_HEX}{{2}}){{{size - 1}}}",
            rf"{_HEX}{{2}}(-{_HEX}{{2}}){{{size - 1}}}",
            rf"{_HEX}{{4}}(\.{_HEX}{{4}}){{{size // 2 - 1}}}",
        )
    )


def _long_name(text: str) -> bool:
    return len(text) <= 253 and re.fullmatch(rf"{_LABEL}(\.{_LABEL})*", text) is not None


def _short_name(text: str) -> bool:
    return len(text) <= 63 and re.fullmatch(_LABEL, text) is not None


FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "bsonobjectid": _pattern(r"[0-9a-f]{24}", re.IGNORECASE),
    "byte": _byte,
    "cidr": _cidr,
    "creditcard": _card,
    "date": _date,
    "datetime": _date_time,
    "duration": _duration,
    "email": _email,
    "hexcolor": _pattern(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _host,
    "ipv4": _ip(4),
    "ipv6": _ip(6),
    "isbn": _isbn,
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "k8slongname": _long_name,
    "k8sshortname": _short_name,
    "mac": _mac,
    "password": lambda text: True,
    "rgbcolor": _pattern(rf"rgb\(\s*{_COLOR}\s*,\s*{_COLOR}\s*,\s*{_COLOR}\s*\)"),
    "ssn": _pattern(r"[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}"),
    "uri": _uri,
    "uuid": _pattern(_UUID.format(_HEX, _HEX), re.IGNORECASE),
    "uuid3": _pattern(_UUID.format("3", _HEX), re.IGNORECASE),
    "uuid4": _pattern(_UUID.format("4", "[89ab]"), re.IGNORECASE),
    "uuid5": _pattern(_UUID.format("5", "[89ab]"), re.IGNORECASE),
}
"""By name without hyphens."""
