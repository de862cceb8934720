"""YAML documents with Helm template text in them: written as data with marks, which are replaced in the YAML text."""

import re
from collections.abc import Mapping
from typing import Any

import yaml

__all__ = ("Draft",)

LINES = re.compile(r"^(?P<before> *)(?:(?P<key>LINES\d+MARK): null|- (?P<item>LINES\d+MARK))$")
VALUE = re.compile(r"VALUE\d+MARK")


class _Dumper(yaml.SafeDumper):
    """Writes shared parts out in full."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


class Draft:
    """Collects template text for one document.

    `value` gives what stands for a scalar. `lines` gives a key (with value None) or an item of a list in whose place come whole lines,
    indented like the key or item; in them `<COL>` is that column and `<IN>` two columns more.
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def value(self, text: str) -> str:
        return self._mark("VALUE", text)

    def lines(self, *texts: str) -> str:
        return self._mark("LINES", "\n".join(texts))

    def optional(self, key: str, path: str) -> str:
        """Lines with `key` and the value at `path` of the chart's values, if there is one."""
        return self.lines(f"{{{{- with {path} }}}}", f"{key}:", "  {{- toYaml . | nindent <IN> }}", "{{- end }}")

    def write(self, document: Mapping[str, Any]) -> str:
        """The document as a template."""
        text = yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, width=1000)
        return "".join(f"{self._line(line)}\n" for line in text.splitlines())

    def _mark(self, kind: str, text: str) -> str:
        mark = f"{kind}{len(self._texts)}MARK"
        self._texts[mark] = text
        return mark

    def _line(self, line: str) -> str:
        found = LINES.match(line)
        if found is None:
            return VALUE.sub(lambda mark: self._texts[mark[0]], line)
        column = len(found["before"])
        text = self._texts[found["key"] or found["item"]].replace("<COL>", str(column)).replace("<IN>", str(column + 2))
        # Actions stand at the left: their own white space is cut anyway, and a reader sees what is YAML.
        return "\n".join(part if part.startswith("{{") else " " * column + part for part in text.splitlines())
