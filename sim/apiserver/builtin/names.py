"""What the server says about names: of objects, containers, ports, keys and references."""

import re
from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address
from typing import Any

from api.fielderrors import FieldError, invalid
from sim.apiserver.metadata import LABEL, SUBDOMAIN, SUBDOMAIN_TEXT, VALUE, VALUE_TEXT, qualified_name_errors

__all__ = (
    "LABEL_TEXT",
    "SUBDOMAIN_TEXT",
    "bad_label",
    "bad_labels",
    "bad_subdomain",
    "bad_value",
    "config_key_problems",
    "is_ip",
    "label_name",
    "path_segment",
    "plain_label_name",
    "port_name_problems",
    "qualified",
    "subdomain_name",
)

LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', "
    "regex used for validation is '[-._a-zA-Z0-9]+')"
)
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_PORT = re.compile(r"[-a-z0-9]+")


@lru_cache(maxsize=8192)
def subdomain_name(name: str) -> tuple[str, ...]:
    """Names of most objects."""
    out = ("must be no more than 253 characters",) if len(name) > 253 else ()
    return out if SUBDOMAIN.fullmatch(name) else (*out, SUBDOMAIN_TEXT)


@lru_cache(maxsize=8192)
def label_name(name: str) -> tuple[str, ...]:
    """Names that become DNS labels: containers, volumes."""
    out = ("must be no more than 63 characters",) if len(name) > 63 else ()
    return out if LABEL.fullmatch(name) else (*out, LABEL_TEXT)


def plain_label_name(name: str) -> tuple[str, ...]:
    """Names of namespaces and services."""
    return ("must not contain dots",) if "." in name else label_name(name)


def path_segment(name: str) -> tuple[str, ...]:
    """Names that only have to fit into a path: roles and bindings."""
    if name in (".", ".."):
        return (f"may not be '{name}'",)
    return tuple(f"may not contain '{c}'" for c in "/%" if c in name)


@lru_cache(maxsize=8192)
def qualified(key: str) -> tuple[str, ...]:
    """Keys of labels, names of gates and the like."""
    return tuple(qualified_name_errors(key))


def port_name_problems(name: str) -> list[str]:
    """Names of container ports (IANA service names)."""
    out = ["must be no more than 15 characters"] if len(name) > 15 else []
    if not _PORT.fullmatch(name):
        out.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= c <= "z" for c in name):
        out.append("must contain at least one letter (a-z)")
    if "--" in name:
        out.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        out.append("must not begin or end with a hyphen")
    return out


def config_key_problems(key: str) -> list[str]:
    """Keys of config maps and secrets."""
    out = ["must be no more than 253 characters"] if len(key) > 253 else []
    if not _KEY.fullmatch(key):
        out.append(KEY_TEXT)
    elif key == ".":
        out.append("must not be '.'")
    elif key.startswith(".."):
        out.append("must not be '..'" if key == ".." else "must not start with '..'")
    return out


def bad_subdomain(path: str, name: str) -> list[FieldError]:
    return [invalid(path, name, text) for text in subdomain_name(name)]


def bad_label(path: str, name: str) -> list[FieldError]:
    return [invalid(path, name, text) for text in label_name(name)]


def bad_value(path: str, value: str) -> list[FieldError]:
    """Values of labels."""
    out = [invalid(path, value, "must be no more than 63 bytes")] if len(value) > 63 else []
    return out if VALUE.fullmatch(value) else [*out, invalid(path, value, VALUE_TEXT)]


def bad_labels(path: str, labels: Mapping[str, str]) -> list[FieldError]:
    """A map of labels, such as a selector."""
    out: list[FieldError] = []
    for key in sorted(labels):
        out += [invalid(path, key, text) for text in qualified(key)]
        out += bad_value(path, labels[key])
    return out


def is_ip(text: Any) -> bool:
    """Whether it is an address of IPv4 or IPv6."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
