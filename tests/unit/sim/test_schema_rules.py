"""The evaluator of rules."""

import pytest

from sim.apiserver.schema.cel.program import compiled
from sim.apiserver.schema.cel.syntax import CelSyntaxError
from sim.apiserver.schema.cel.values import NO_VALUE, CelError, Optional

SELF = {"a": 1, "l": [1, 2, 3], "m": {"aa": 1}, "s": "abc", "d": 1.5, "namespace": "n", "x-y": 2}


@pytest.mark.parametrize(
    "source",
    [
        "has(self.a) && !has(self.zz)", "self.l.all(x, x > 0)", "self.l.exists_one(x, x == 2)", "self.l.map(x, x * 2) == [2, 4, 6]",
        "self.l.filter(x, x > 1).size() == 2", "self.m.all(k, v, k.startsWith('a') && v > 0)", "self.s.matches('^[[:alpha:]]+$')",
        "self.s.upperAscii() == 'ABC'", "duration('1h30m') > duration('1m')", "quantity('1Gi').isGreaterThan(quantity('1Mi'))",
        "ip('127.0.0.1').isLoopback()", "cidr('10.0.0.0/8').containsIP('10.1.1.1')", "url('https://a.b:8/c').getPort() == '8'",
        "!isQuantity('1x')", "self.l.isSorted()", "self.l.sum() == 6", "sets.contains([1, 2], [1])", "self.?zz.?b.orValue(1) == 1",
        "optional.of(1).hasValue()", "self.__namespace__ == 'n'", "self.x__dash__y == 2", "1 / 0 == 1 || true", "!(1 == true)", "1 == 1.0",
        "cel.bind(x, self.a, x == 1)", "'%s %d'.format(['a', 1]) == 'a 1'", "semver('1.2.3').isGreaterThan(semver('1.2.2'))",
        "timestamp('2020-01-01T00:00:00Z').getFullYear() == 2020", "-7 / 2 == -3 && -7 % 2 == -1", "b'ab' == bytes('ab')",
        "self.a == 2 ? false : true", "[1, 2] + [3] == self.l", "r'\\d' == '\\\\d'", "math.greatest(1, 3) == 3",
    ],
)  # fmt: skip
def test_true(source):
    assert compiled(source)(SELF, {}) is True


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("self.zz == 1", "no such key: zz"),
        ("1 / 0 == 1", "division by zero"),
        ("self.l[5] == 1", "index out of bounds: 5"),
        ("self.s + 1 == 'x'", "no such overload"),
        ("9223372036854775807 + 1 > 0", "integer overflow"),
    ],
)
def test_fails(source, text):
    with pytest.raises(CelError, match=text):
        compiled(source)(SELF, {})


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("foo == 1", "1:1: undeclared reference to 'foo'"),
        ("bar(self)", "1:4: undeclared reference to 'bar'"),
        ("self.", "1:6: Syntax error"),
    ],
)
def test_does_not_compile(source, text):
    with pytest.raises(CelSyntaxError, match=text):
        compiled(source)


def test_optional_old_self():
    program = compiled("oldSelf.hasValue() ? oldSelf.value() == self : self == 'first'")
    assert program("first", NO_VALUE) is True
    assert program("second", Optional(True, "first")) is False


@pytest.mark.parametrize(
    ("macro", "inner", "outer"), [("all", "true", ""), ("all", "1/0 == 1", ""), ("filter", "true", ".size() >= 0"), ("map", "1", "")]
)
def test_nested_loops_end(macro, inner, outer):
    source = inner
    for depth in range(8):
        source = f"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].{macro}(a{depth}, {source}){outer}"
    with pytest.raises(CelError, match="operation cancelled: actual cost limit exceeded"):
        compiled(source)({}, None)
