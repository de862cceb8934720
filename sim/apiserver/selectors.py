"""Label and field selectors."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sim.apiserver.objects import Object
from sim.apiserver.status import bad_request

__all__ = ("Selector", "field_requirements", "label_selector", "labels_of", "matches", "selector_of")

SYMBOL = re.compile(r"\s*(?:(?P<op>!=|==|=|!|\(|\)|,|>|<)|(?P<word>[^\s=!(),<>]+))")
NAME = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
REQUIREMENT = "unable to parse requirement: "
OPERATOR = re.compile("!=|==|=")
OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
"""From those of a metav1.LabelSelector."""
PREFIX = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class Requirement:
    """key op values; op: in, notin, exists, !, gt, lt."""

    key: str
    op: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.op:
            case "in":
                return value in self.values if value is not None else False
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case _:
                if value is None or not re.fullmatch(r"[+-]?\d+", value):
                    return False
                bound = int(self.values[0])
                return int(value) > bound if self.op == "gt" else int(value) < bound


Selector = Sequence[Requirement]


def matches(selector: Selector, labels: Mapping[str, str]) -> bool:
    """Whether all requirements hold."""
    return all(r.holds(labels) for r in selector)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.symbols: list[str] = []
        position = 0
        while position < len(text):
            found = SYMBOL.match(text, position)
            if found is None:
                break
            self.symbols.append(found.group("op") or found.group("word"))
            position = found.end()
        self.position = 0

    def peek(self) -> str:
        return self.symbols[self.position] if self.position < len(self.symbols) else ""

    def next(self) -> str:
        symbol = self.peek()
        self.position += 1
        return symbol

    @staticmethod
    def fail(found: str, expected: str, where: str = REQUIREMENT) -> Exception:
        return bad_request(f"{where}found '{found}', expected: {expected}")

    def requirements(self) -> list[Requirement]:
        out: list[Requirement] = []
        while self.peek():
            out.append(self.requirement())
            symbol = self.next()
            if not symbol:
                break
            if symbol != ",":
                raise self.fail(symbol, "',' or 'end of string'", "")
            if self.peek() in ("", ",", ")"):
                raise self.fail(self.peek(), "identifier after ','", "")
        return out

    def requirement(self) -> Requirement:
        symbol = self.next()
        negated = symbol == "!"
        key = self.next() if negated else symbol
        if not key or not re.match(r"[^=!(),<>]", key):
            raise self.fail(key, "identifier") if negated else self.fail(key, "!, identifier, or 'end of string'", "")
        _check_key(key)
        if negated:
            return Requirement(key, "!")
        op = self.peek()
        if op in ("", ","):
            return Requirement(key, "exists")
        self.position += 1
        match op:
            case "=" | "==":
                return Requirement(key, "in", (_checked(key, self._value()),))
            case "!=":
                return Requirement(key, "notin", (_checked(key, self._value()),))
            case "in" | "notin":
                return Requirement(key, op, self._values(key))
            case ">" | "<":
                value = self._value()
                if not re.fullmatch(r"[+-]?\d+", value):
                    why = f"values[0]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
                    raise bad_request(REQUIREMENT + why)
                return Requirement(key, "gt" if op == ">" else "lt", (value,))
            case _:
                raise self.fail(op, "in, notin, =, ==, !=, gt, lt")

    def _value(self) -> str:
        symbol = self.peek()
        if symbol in ("", ","):
            return ""
        if symbol in ("=", "==", "!=", "(", ")", "!", ">", "<"):
            raise self.fail(symbol, "identifier")
        return self.next()

    def _values(self, key: str) -> tuple[str, ...]:
        if (opening := self.next()) != "(":
            raise bad_request(f"{REQUIREMENT}found '{opening}' expected: '('")
        values: list[str] = []
        while True:
            symbol = self.next()
            match symbol:
                case ")":
                    if not values:
                        values.append("")
                    return tuple(_checked(key, v) for v in values)
                case ",":
                    if self.peek() in (",", ")"):
                        values.append("")
                case "" | "(" | "=" | "==" | "!=" | "!" | ">" | "<":
                    raise self.fail(symbol, "',' or ')'" if values else "',', ')' or identifier")
                case _:
                    values.append(symbol)


def _check_key(key: str) -> None:
    prefix, slash, name = key.rpartition("/")
    problem = ""
    if "/" in prefix or (slash and not prefix):
        problem = (
            "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
            "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )
        if slash and not prefix and key.count("/") == 1:
            problem = "prefix part must be non-empty"
    elif prefix and (len(prefix) > 253 or not PREFIX.fullmatch(prefix)):
        problem = (
            "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
            "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
        )
    elif len(name) > 63:
        problem = "name part must be no more than 63 bytes"
    elif not NAME.fullmatch(name):
        problem = (
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
            "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
        )
    if problem:
        raise bad_request(f'unable to parse requirement: <nil>: Invalid value: "{key}": {problem}')


def _checked(key: str, value: str) -> str:
    if len(value) > 63:
        raise bad_request(f'unable to parse requirement: values[0][{key}]: Invalid value: "{value}": must be no more than 63 bytes')
    if value and not NAME.fullmatch(value):
        raise bad_request(
            f'unable to parse requirement: values[0][{key}]: Invalid value: "{value}": a valid label must be an empty string or consist of '
            "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
            "'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        )
    return value


def label_selector(text: str) -> Selector:
    """Parses a label selector. Raises StatusError 400 with the server's words."""
    return _Parser(text).requirements() if text.strip() else ()


def selector_of(selector: Object | None) -> Selector:
    """A metav1.LabelSelector; none and an empty one select everything."""
    labels: dict[str, str] = (selector or {}).get("matchLabels") or {}
    expressions: list[Object] = (selector or {}).get("matchExpressions") or []
    out = [Requirement(key, "in", (value,)) for key, value in labels.items()]
    return out + [
        Requirement(e.get("key", ""), OPERATORS.get(e.get("operator", ""), "in"), tuple(e.get("values") or ())) for e in expressions
    ]


def field_requirements(text: str, check: Callable[[str], None]) -> tuple[tuple[str, bool, str], ...]:
    """Parses a field selector into (field, equal, value). `check` raises for a field that cannot be selected by."""
    out: list[tuple[str, bool, str]] = []
    for part in _split(text):
        if not part:
            continue
        operator = OPERATOR.search(part)
        if operator is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        field, value = part[: operator.start()], _unescaped(part[operator.end() :])
        check(field)
        out.append((field, operator.group() != "!=", value))
    return tuple(out)


def _split(text: str) -> list[str]:
    return re.split(r"(?<!\\),", text)


def _unescaped(value: str) -> str:
    return re.sub(r"\\([\\,=])", r"\1", value)


def labels_of(obj: Object) -> Mapping[str, str]:
    """Labels of an object, empty when it has none."""
    return obj["metadata"].get("labels") or {}
