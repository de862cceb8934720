"""Go's regular expressions in Python."""

import re
from functools import lru_cache

__all__ = ("go_regex",)

_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ", "upper": "A-Z",
    "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_PART = re.compile(r"\\.|\[\^?\]?|\[:(\w+):\]|\]|\$", re.DOTALL)


@lru_cache(maxsize=4096)
def go_regex(pattern: str) -> re.Pattern[str]:
    """The pattern compiled so that it means what RE2 makes of it. Raises re.error (also a ValueError's cousin) where Python cannot."""
    out: list[str] = []
    at, is_class = 0, False
    while at < len(pattern):
        match = _PART.match(pattern, at) if pattern[at] in "\\[]$" else None
        text = match[0] if match else pattern[at]
        if is_class and text.startswith("["):
            named = re.match(r"\[:(\w+):\]", pattern[at:])
            text, piece = (named[0], _POSIX[named[1]]) if named and named[1] in _POSIX else ("[", r"\[")
        elif text.startswith("["):
            is_class, piece = True, text
        elif text == "]":
            is_class, piece = False, text if is_class else r"\]"
        elif (text == "$" and not is_class) or text == r"\z":
            piece = r"\Z"
        else:
            piece = text
        out.append(piece)
        at += len(text)
    return re.compile("".join(out), re.ASCII)
