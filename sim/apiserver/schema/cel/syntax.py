"""Source text of CEL to a tree."""

import re
from dataclasses import dataclass, field
from typing import Any

__all__ = ("CelSyntaxError", "Node", "parse")

_TOKEN = re.compile(
    r"""(?P<space>[\s\f]+|//[^\n]*)
    |(?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|\d+)
    |(?P<text>(?:[rR][bB]?|[bB][rR]?)?(?:\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<quoted>`[A-Za-z0-9_.\-/ ]+`)
    |(?P<op>\.\?|\[\?|&&|\|\||<=|>=|==|!=|[-+*/%!<>?:.,()\[\]{}])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\'\"`?])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))", re.DOTALL)
_SHORT = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_RELATIONS = frozenset({"<", "<=", ">=", ">", "==", "!=", "in"})
_LITERALS = {"true": True, "false": False, "null": None}
_MAX_DEPTH = 120
_LONGEST_NUMBER = 1000
"""Characters of a literal; leading zeros count, and Python refuses to read much longer ones."""


class CelSyntaxError(ValueError):
    """Text that is no expression. `at`: offset in the source."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


@dataclass(slots=True)
class Node:
    """kind: literal, name, select, optional_select, has, call (value: function; args[0] is the target of a method), index, optional_index,
    list, map, and, or, conditional. `flags` of a list or map: which entries are optional."""

    kind: str
    at: int
    value: Any = None
    args: list["Node"] = field(default_factory=list["Node"])
    is_method: bool = False
    flags: list[bool] = field(default_factory=list[bool])


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def parse(source: str) -> Node:
    """The tree of an expression; raises CelSyntaxError."""
    parser = _Parser(_tokens(source))
    node = parser.expression()
    if parser.token.kind != "end":
        raise CelSyntaxError(f"Syntax error: extraneous input '{parser.token.text}' expecting <EOF>", parser.token.at)
    return node


def _tokens(source: str) -> list[_Token]:
    out: list[_Token] = []
    at = 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise CelSyntaxError(f"Syntax error: token recognition error at: '{source[at]}'", at)
        if match.lastgroup != "space":
            out.append(_Token(str(match.lastgroup), match[0], at))
        at = match.end()
    out.append(_Token("end", "<EOF>", len(source)))
    return out


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = tokens
        self.index = 0
        self.depth = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.index]

    def accept(self, *texts: str) -> _Token | None:
        token = self.tokens[self.index]
        if token.kind in ("op", "name") and token.text in texts:
            self.index += 1
            return token
        return None

    def expect(self, text: str) -> _Token:
        token = self.accept(text)
        if token is None:
            verb = "mismatched" if self.token.kind == "end" else "extraneous"
            raise CelSyntaxError(f"Syntax error: {verb} input '{self.token.text}' expecting '{text}'", self.token.at)
        return token

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise CelSyntaxError("expression recursion limit exceeded", self.token.at)
        node = self.any_of()
        if mark := self.accept("?"):
            chosen = self.any_of()
            self.expect(":")
            node = Node("conditional", mark.at, args=[node, chosen, self.expression()])
        self.depth -= 1
        return node

    def any_of(self) -> Node:
        node = self.all_of()
        while mark := self.accept("||"):
            node = Node("or", mark.at, args=[node, self.all_of()])
        return node

    def all_of(self) -> Node:
        node = self.relation()
        while mark := self.accept("&&"):
            node = Node("and", mark.at, args=[node, self.relation()])
        return node

    def relation(self) -> Node:
        node = self.sum()
        while mark := self.accept(*_RELATIONS):
            name = "@in" if mark.text == "in" else f"_{mark.text}_"
            node = Node("call", mark.at, name, [node, self.sum()])
        return node

    def sum(self) -> Node:
        node = self.product()
        while mark := self.accept("+", "-"):
            node = Node("call", mark.at, f"_{mark.text}_", [node, self.product()])
        return node

    def product(self) -> Node:
        node = self.unary()
        while mark := self.accept("*", "/", "%"):
            node = Node("call", mark.at, f"_{mark.text}_", [node, self.unary()])
        return node

    def unary(self) -> Node:
        marks: list[_Token] = []
        while mark := self.accept("!", "-"):
            marks.append(mark)
        node = self.member()
        for mark in reversed(marks):
            number = node.value if node.kind == "literal" else None
            if mark.text == "-" and isinstance(number, (int, float)) and not isinstance(number, bool):
                node = Node("literal", mark.at, -number)
            else:
                node = Node("call", mark.at, f"{mark.text}_", [node])
        return node

    def member(self) -> Node:
        node = self.primary()
        while mark := self.accept(".", ".?", "[", "[?"):
            if mark.text in (".", ".?"):
                name = self.field_name()
                if mark.text == "." and self.accept("("):
                    node = Node("call", self.tokens[self.index - 1].at, name, [node, *self.arguments(")")], is_method=True)
                else:
                    node = Node("select" if mark.text == "." else "optional_select", mark.at, name, [node])
            else:
                index = self.expression()
                self.expect("]")
                node = Node("index" if mark.text == "[" else "optional_index", mark.at, args=[node, index])
        return node

    def field_name(self) -> str:
        token = self.token
        if token.kind == "name":
            self.index += 1
            return token.text
        if token.kind == "quoted":
            self.index += 1
            return token.text[1:-1]
        raise CelSyntaxError(f"Syntax error: no viable alternative at input '.{'' if token.kind == 'end' else token.text}'", token.at)

    def arguments(self, end: str) -> list[Node]:
        out: list[Node] = []
        if self.accept(end):
            return out
        while True:
            out.append(self.expression())
            if self.accept(end):
                return out
            self.expect(",")

    def primary(self) -> Node:
        token = self.token
        if token.kind == "end" or (token.kind == "op" and token.text not in ("(", "[", "{", ".")):
            raise CelSyntaxError(f"Syntax error: mismatched input '{token.text}' expecting {{'[', '{{', '(', '.', '-', '!', 'true', "
                f"'false', "
                                 "'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}", token.at)  # fmt: skip
        self.index += 1
        if token.kind == "op":
            return self.bracketed(token)
        if token.kind == "name":
            if token.text in _LITERALS:
                return Node("literal", token.at, _LITERALS[token.text])
            if self.accept("("):
                return self.function(token)
            return Node("name", token.at, token.text)
        return Node("literal", token.at, _literal(token))

    def function(self, token: _Token) -> Node:
        at = self.tokens[self.index - 1].at
        args = self.arguments(")")
        if token.text == "has":
            if len(args) != 1 or args[0].kind != "select":
                raise CelSyntaxError("invalid argument to has() macro", args[0].at if args else at)
            return Node("has", at, args[0].value, args[0].args)
        return Node("call", at, token.text, args)

    def bracketed(self, token: _Token) -> Node:
        if token.text == "(":
            node = self.expression()
            self.expect(")")
            return node
        if token.text == ".":
            return Node("name", token.at, self.field_name())
        node = Node("list" if token.text == "[" else "map", token.at)
        end = "]" if token.text == "[" else "}"
        while not self.accept(end):
            node.flags.append(self.accept("?") is not None)
            node.args.append(self.expression())
            if token.text == "{":
                self.expect(":")
                node.args.append(self.expression())
            if not self.accept(","):
                self.expect(end)
                break
        return node


def _literal(token: _Token) -> Any:
    text = token.text
    if token.kind == "float":
        return float(text)
    if token.kind in ("int", "uint"):
        if len(text) > _LONGEST_NUMBER:
            raise CelSyntaxError(f"invalid {token.kind} literal", token.at)
        number = int(text.rstrip("uU"), 0) if text[:2] in ("0x", "0X") else int(text.rstrip("uU"))
        if number > 2**64 - 1 or (token.kind == "int" and number > 2**63):
            raise CelSyntaxError(f"invalid {token.kind} literal", token.at)
        return number
    prefix = re.match(r"[rRbB]*", text)
    flags = prefix[0].lower() if prefix else ""
    body = text[len(flags) :]
    width = 3 if body[:3] in ('"""', "'''") else 1
    body = body[width:-width]
    if "r" not in flags:
        if "\\" in _ESCAPE.sub("", body):
            raise CelSyntaxError(f"Syntax error: token recognition error at: '{text}'", token.at)
        body = _ESCAPE.sub(_unescaped, body)
    return body.encode() if "b" in flags else body


def _unescaped(match: re.Match[str]) -> str:
    short, hexa, four, eight, octal = match.groups()
    if short is not None:
        return _SHORT.get(short, short)
    return chr(int(octal, 8)) if octal is not None else chr(int(hexa or four or eight, 16))
