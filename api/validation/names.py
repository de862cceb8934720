"""Names, labels and annotations: their syntax, and the room that generated names need (grove.md §1.7, §1.12)."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from api.fielderrors import FieldError, invalid, required, too_long
from api.grove import PodCliqueSet

__all__ = (
    "duplicates",
    "env_name_problem",
    "group_name_length",
    "label_problem",
    "map_errors",
    "metadata_errors",
    "standalone_name_length",
    "subdomain_problem",
)

MAX_COMBINED = 45
"""Characters of PodCliqueSet, scaling group and clique name together: indices, dashes and five random characters must fit into 63 too."""
MAX_LABEL = 63
MAX_SUBDOMAIN = 253
MAX_ANNOTATIONS = 256 * 1024
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
SUBDOMAIN = re.compile(rf"{LABEL.pattern}(\.{LABEL.pattern})*")
QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
ENV_NAME = re.compile(r"(?!\.{1,2}$|\.\.)[-._A-Za-z][-._A-Za-z0-9]*")


def duplicates(names: Iterable[str]) -> list[str]:
    """Names that occur more than once, each once, in order."""
    return [name for name, n in Counter(names).items() if n > 1]


def subdomain_problem(name: str) -> str:
    """Why `name` is no DNS-1123 subdomain, "" when it is one."""
    if len(name) > MAX_SUBDOMAIN:
        return f"must have at most {MAX_SUBDOMAIN} characters"
    if SUBDOMAIN.fullmatch(name) is None:
        return "must consist of lower case letters, digits, '-' and '.', and begin and end with a letter or digit"
    return ""


def label_problem(name: str) -> str:
    """Why `name` is no DNS-1123 label, "" when it is one."""
    if len(name) > MAX_LABEL:
        return f"must have at most {MAX_LABEL} characters"
    if LABEL.fullmatch(name) is None:
        return "must consist of lower case letters, digits and '-', and begin and end with a letter or digit"
    return ""


def env_name_problem(name: str) -> str:
    """Why `name` cannot be the name of an environment variable, "" when it can."""
    return "" if ENV_NAME.fullmatch(name) else "must consist of letters, digits, '-', '_' and '.', and not begin with a digit or '..'"


def metadata_errors(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Name, labels and annotations of the set itself."""
    name = pcs.metadata.name
    if not name and not pcs.metadata.generate_name:
        yield required("metadata.name", "name or generateName must be set")
    elif name and (problem := subdomain_problem(name)):
        yield invalid("metadata.name", name, problem)
    yield from map_errors("metadata", pcs.metadata.labels, pcs.metadata.annotations)


def map_errors(path: str, labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None) -> Iterator[FieldError]:
    """Syntax of labels and annotations of the thing at `path`."""
    for key, value in (labels or {}).items():
        if problem := _key_problem(key):
            yield invalid(f"{path}.labels", key, problem)
        if value and (len(value) > MAX_LABEL or QUALIFIED.fullmatch(value) is None):
            yield invalid(
                f"{path}.labels",
                value,
                f"a label's value has at most {MAX_LABEL} letters, digits, '-', '_' and '.', and begins and ends with a letter or digit",
            )
    for key in annotations or {}:
        if problem := _key_problem(key.lower()):
            yield invalid(f"{path}.annotations", key, problem)
    if sum(len(k.encode("utf-8", "replace")) + len(v.encode("utf-8", "replace")) for k, v in (annotations or {}).items()) > MAX_ANNOTATIONS:
        yield too_long(f"{path}.annotations", f"may have at most {MAX_ANNOTATIONS} bytes in total")


def _key_problem(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if slash and (not prefix or subdomain_problem(prefix)):
        return "the part before '/' must be a DNS subdomain, such as example.com"
    if len(name) > MAX_LABEL or QUALIFIED.fullmatch(name) is None:
        return f"the name has at most {MAX_LABEL} letters, digits, '-', '_' and '.', and begins and ends with a letter or digit"
    return ""


def standalone_name_length(path: str, pcs: str, clique: str) -> Iterator[FieldError]:
    """A clique in no scaling group, whose name is at `path`."""
    length = len(pcs) + len(clique)
    if length > MAX_COMBINED:
        detail = f"{_too_much(length)}: PodCliqueSet '{pcs}' or PodClique '{clique}'"
        yield invalid(path, clique, detail)
        yield invalid("metadata.name", pcs, detail)


def group_name_length(group_path: str, index: int, pcs: str, group: str, clique: str) -> Iterator[FieldError]:
    """Member number `index` of the scaling group at `group_path`."""
    length = len(pcs) + len(group) + len(clique)
    if length > MAX_COMBINED:
        detail = f"{_too_much(length)}: PodCliqueSet '{pcs}', PodCliqueScalingGroup '{group}', or PodClique '{clique}'"
        yield invalid(f"{group_path}.cliqueNames[{index}].name", clique, detail)
        yield invalid(f"{group_path}.name", group, detail)
        yield invalid("metadata.name", pcs, detail)


def _too_much(length: int) -> str:
    return f"combined resource name length {length} exceeds {MAX_COMBINED}-character limit required for pod naming. Consider shortening"
