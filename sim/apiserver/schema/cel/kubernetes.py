"""Kubernetes' own functions: quantities, IP addresses, networks, URLs, semantic versions, named formats."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# Values of expressions have no static type: functions get whatever an expression gives them, and fail when it does not fit.

import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import total_ordering
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from api.quantity import QuantityError, nano
from sim.apiserver.schema.cel.values import NO_VALUE, CelError, Optional, compare, no_overload
from sim.apiserver.schema.formats import FORMATS

__all__ = ("CIDR", "FUNCTIONS", "IP", "METHODS", "NAMED", "is_canonical", "named_format", "quote")

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?")
_NANO = 10**9
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """An amount such as 1Gi, in billionths."""

    number: int


@dataclass(frozen=True, slots=True)
class IP:
    address: _Address

    def __str__(self) -> str:
        return str(self.address)


@dataclass(frozen=True, slots=True)
class CIDR:
    address: _Address
    network: ipaddress.IPv4Network | ipaddress.IPv6Network

    def __str__(self) -> str:
        return f"{self.address}/{self.network.prefixlen}"


@dataclass(frozen=True, slots=True)
class URL:
    text: str


@total_ordering
@dataclass(frozen=True, slots=True)
class Semver:
    numbers: tuple[int, int, int]
    pre: str = ""

    def __lt__(self, other: "Semver") -> bool:
        return (self.numbers, not self.pre, self.pre) < (other.numbers, not other.pre, other.pre)


@dataclass(frozen=True, slots=True)
class Format:
    check: Callable[[str], bool]
    message: str


def _quantity(text: str) -> Quantity:
    try:
        return Quantity(nano(text))
    except QuantityError as error:
        raise CelError(str(error)) from None


def _ip(text: str) -> IP:
    try:
        if "%" not in text:
            return IP(ipaddress.ip_address(text))
    except ValueError:
        pass
    raise CelError(f'IP Address "{text}" parse error during conversion from string: ParseAddr("{text}"): unable to parse IP')


def _cidr(value: Any) -> CIDR:
    address, slash, bits = value.partition("/")
    try:
        if slash and bits.isdecimal():
            return CIDR(ipaddress.ip_address(address), ipaddress.ip_network(value, strict=False))
    except ValueError:
        pass
    raise CelError(f'CIDR "{value}" parse error during conversion from string: netip.ParsePrefix("{value}"): no \'/\'')


def _url(text: str) -> URL:
    if not FORMATS["uri"](text):
        raise CelError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return URL(text)


def _semver(text: str, normalize: bool = False) -> Semver:
    if normalize:
        parts = text.removeprefix("v").split(".")
        text = ".".join([p.lstrip("0") or "0" for p in parts] + ["0"] * (3 - len(parts)))
    match = _VERSION.fullmatch(text)
    if match is None:
        raise CelError("No Major.Minor.Patch elements found")
    return Semver((int(match[1]), int(match[2]), int(match[3])), match[4] or "")


def _holds(parse: Callable[..., object]) -> Callable[..., bool]:
    def run(*args: Any) -> bool:
        try:
            parse(*args)
        except CelError:
            return False
        return True

    return run


def is_canonical(text: str) -> bool:
    return str(_ip(text)) == text


def quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def named_format(name: str) -> Optional:
    return Optional(True, NAMED[name]()) if name in NAMED else NO_VALUE


def _named(check: Callable[[str], bool], message: str) -> Callable[[], Format]:
    found = Format(check, message)
    return lambda: found


def _fits(pattern: str, limit: int) -> Callable[[str], bool]:
    return lambda text: len(text) <= limit and re.fullmatch(pattern, text) is not None


def _validate(form: Format, text: str) -> Optional:
    return NO_VALUE if form.check(text) else Optional(True, [form.message])


def _contains_ip(net: CIDR, address: Any) -> bool:
    return (_ip(address) if type(address) is str else address).address in net.network


def _contains_cidr(net: CIDR, other: Any) -> bool:
    inner = (_cidr(other) if type(other) is str else other).network
    return inner.version == net.network.version and inner.subnet_of(net.network)  # type: ignore[arg-type]


def _is_unicast(ip: IP) -> bool:
    a = ip.address
    return not (a.is_multicast or a.is_loopback or a.is_unspecified or a.is_link_local or str(a) == "255.255.255.255")


def _host(url: URL) -> str:
    return urlsplit(url.text).netloc.rpartition("@")[2]


def _compare_to(a: Any, b: Any) -> int:
    if type(a) is not type(b) or not isinstance(a, (Quantity, Semver)):
        raise no_overload()
    return compare(a, b)


def _plus(sign: int) -> Callable[[Quantity, Any], Quantity]:
    return lambda a, b: Quantity(a.number + sign * (b.number if isinstance(b, Quantity) else b * _NANO))


def _as_integer(quantity: Quantity) -> int:
    if quantity.number % _NANO:
        raise CelError("cannot convert value to integer")
    return quantity.number // _NANO


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "quantity": _quantity,
    "isQuantity": _holds(_quantity),
    "ip": _ip,
    "isIP": _holds(_ip),
    "cidr": _cidr,
    "isCIDR": _holds(_cidr),
    "url": _url,
    "isURL": _holds(_url),
    "semver": _semver,
    "isSemver": _holds(_semver),
}
METHODS: Final[Mapping[str, Callable[..., Any]]] = {
    "isGreaterThan": lambda a, b: _compare_to(a, b) > 0,
    "isLessThan": lambda a, b: _compare_to(a, b) < 0,
    "compareTo": _compare_to,
    "sign": lambda q: (q.number > 0) - (q.number < 0),
    "add": _plus(1),
    "sub": _plus(-1),
    "asInteger": _as_integer,
    "isInteger": lambda q: q.number % _NANO == 0,
    "asApproximateFloat": lambda q: q.number / _NANO,
    "family": lambda ip: ip.address.version,
    "isLoopback": lambda ip: ip.address.is_loopback,
    "isUnspecified": lambda ip: ip.address.is_unspecified,
    "isLinkLocalMulticast": lambda ip: ip.address.is_multicast and str(ip.address).startswith(("224.0.0.", "ff02:")),
    "isLinkLocalUnicast": lambda ip: ip.address.is_link_local,
    "isGlobalUnicast": _is_unicast,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "ip": lambda net: IP(net.address),
    "masked": lambda net: CIDR(net.network.network_address, net.network),
    "prefixLength": lambda net: net.network.prefixlen,
    "getScheme": lambda u: urlsplit(u.text).scheme,
    "getHost": _host,
    "getHostname": lambda u: re.sub(r":\d*$", "", _host(u)).strip("[]"),
    "getPort": lambda u: str(urlsplit(u.text).port or ""),
    "getEscapedPath": lambda u: urlsplit(u.text).path,
    "getQuery": lambda u: parse_qs(urlsplit(u.text).query, keep_blank_values=True),
    "major": lambda v: v.numbers[0],
    "minor": lambda v: v.numbers[1],
    "patch": lambda v: v.numbers[2],
    "validate": _validate,
}
NAMED: Final[dict[str, Callable[[], Format]]] = {
    "dns1123Label": _named(_fits(_LABEL, 63), "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-'"),
    "dns1123Subdomain": _named(
        _fits(rf"{_LABEL}(\.{_LABEL})*", 253), "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters"
    ),
    "dns1035Label": _named(
        _fits(r"[a-z]([-a-z0-9]*[a-z0-9])?", 63), "a DNS-1035 label must consist of lower case alphanumeric characters or '-'"
    ),
    "labelValue": _named(
        _fits(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", 63),
        "a valid label must be an empty string or consist of alphanumeric characters",
    ),
    **{
        name: _named(FORMATS[form], f"invalid {name}")
        for name, form in (("uri", "uri"), ("uuid", "uuid"), ("byte", "byte"), ("date", "date"), ("datetime", "datetime"))
    },
}
