"""From a path to what it names."""

from dataclasses import dataclass

__all__ = ("Target", "target_of")


@dataclass(frozen=True, slots=True)
class Target:
    """A resource path. `name` "" is the collection; `namespace` "" is all namespaces or cluster scope."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    is_watch: bool = False


def target_of(path: str) -> Target | None:
    """None for paths that are no resource (discovery, health, OpenAPI). Old-style /watch/ paths are understood."""
    parts = path.strip("/").split("/")
    match parts:
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest:
            pass
        case _:
            return None
    is_watch = rest[0] == "watch" and len(rest) > 1
    if is_watch:
        rest = rest[1:]
    namespace = ""
    # namespaces/x is an object; namespaces/x/status and namespaces/x/finalize are its subresources; all else lies in the namespace.
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in ("status", "finalize") and not group):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = rest[0], rest[1] if len(rest) > 1 else "", "/".join(rest[2:])
    return Target(group, version, plural, namespace, name, subresource, is_watch)
