"""Why a text is no JSON, in the words of Go's scanner."""

import re

__all__ = ("json_error",)

_CHARS = r'(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*'
_PLAIN = re.compile(_CHARS)
_TOKEN = re.compile(rf'[ \t\r\n]+|"{_CHARS}"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[{{}}\[\]:,]')
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_END = "unexpected end of JSON input"
_SHOWN = {"'": r"'\''", '"': "'\"'"}


def json_error(text: str, max_depth: int) -> str | None:
    """The complaint about the first fault; None if the text is well-formed and not nested too deeply."""
    wanted, at, stack = "value", 0, list[str]()
    while at < len(text):
        match = _TOKEN.match(text, at)
        token = match[0] if match else ""
        if token and token[0] in " \t\r\n":
            at += len(token)
            continue
        if not token or not _fits(token, wanted, stack):
            return _complaint(text, at, wanted, stack)
        wanted = _next(token, wanted, stack)
        if len(stack) > max_depth:
            return f"invalid character '{token}' exceeded max depth"
        at += len(token)
    return None if wanted == "end" else _END


def _fits(token: str, wanted: str, stack: list[str]) -> bool:
    first = token[0]
    if wanted == "end":
        return False
    if wanted in ("value", "value or ]"):
        return first not in "}:,]" or (first == "]" and wanted == "value or ]")
    if wanted in ("key", "key or }"):
        return first == '"' or (first == "}" and wanted == "key or }")
    if wanted == ":":
        return first == ":"
    return first == "," or first == ("}" if stack[-1] == "{" else "]")


def _next(token: str, wanted: str, stack: list[str]) -> str:
    first = token[0]
    if first in "{[":
        stack.append(first)
        return "key or }" if first == "{" else "value or ]"
    if first in "}]":
        stack.pop()
    elif first == ",":
        return "key" if stack[-1] == "{" else "value"
    elif first == ":":
        return "value"
    elif wanted in ("key", "key or }"):
        return ":"
    return "more" if stack else "end"


def _complaint(text: str, at: int, wanted: str, stack: list[str]) -> str:
    char = text[at]
    if char == '"' and wanted in ("key", "key or }", "value", "value or ]"):
        return _text_complaint(text, at + 1)
    if wanted in ("value", "value or ]") and (literal := _LITERALS.get(char)):
        same = next((i for i, c in enumerate(literal) if text[at + i : at + i + 1] != c), 0)
        if at + same >= len(text):
            return _END
        return f"invalid character {_quoted(text[at + same])} in literal {literal} (expecting '{literal[same]}')"
    if char == "-" and wanted in ("value", "value or ]"):
        return f"invalid character {_quoted(text[at + 1])} in numeric literal" if at + 1 < len(text) else _END
    place = {
        "value": "looking for beginning of value",
        "value or ]": "looking for beginning of value",
        "key": "looking for beginning of object key string",
        "key or }": "looking for beginning of object key string",
        ":": "after object key",
        "end": "after top-level value",
    }.get(wanted) or ("after object key:value pair" if stack[-1] == "{" else "after array element")
    return f"invalid character {_quoted(char)} {place}"


def _text_complaint(text: str, at: int) -> str:
    """About a string that begins before `at`."""
    at = _PLAIN.match(text, at).end()  # pyright: ignore[reportOptionalMemberAccess] - it matches nothing, too
    if at >= len(text):
        return _END
    if text[at] != "\\":
        return f"invalid character {_quoted(text[at])} in string literal"
    if at + 1 >= len(text):
        return _END
    if text[at + 1] != "u":
        return f"invalid character {_quoted(text[at + 1])} in string escape code"
    odd = next((c for c in text[at + 2 : at + 6] if c not in "0123456789abcdefABCDEF"), "")
    return f"invalid character {_quoted(odd)} in \\u hexadecimal character escape" if odd else _END


def _quoted(char: str) -> str:
    """Of a byte, as Go shows it."""
    if char.isprintable() or char in _SHOWN:
        return _SHOWN.get(char) or f"'{char}'"
    return f"'\\u{ord(char):04x}'" if ord(char) >= 0x80 else f"'{char.encode('unicode_escape').decode()}'"
