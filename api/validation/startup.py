"""Startup order that is given explicitly by startsAfter (grove.md §1.7, §3)."""

from collections.abc import Iterator, Mapping, Sequence

from api.fielderrors import FieldError, duplicate, invalid, required
from api.grove import PodCliqueSet
from api.validation.names import duplicates

__all__ = ("cycles", "startup_errors")

EXPLICIT = "CliqueStartupTypeExplicit"
CLIQUES = "spec.template.cliques"


def startup_errors(pcs: PodCliqueSet) -> Iterator[FieldError]:
    """Nothing unless the startup type is Explicit: otherwise startsAfter has no meaning."""
    if pcs.spec.template.clique_startup_type != EXPLICIT:
        return
    known = {c.name for c in pcs.spec.template.cliques}
    unknown: dict[str, None] = {}
    edges: dict[str, list[str]] = {}
    for i, clique in enumerate(pcs.spec.template.cliques):
        parents = clique.spec.starts_after or ()
        yield from _parents_errors(f"{CLIQUES}[{i}].spec.startsAfter", clique.name, parents)
        unknown.update((p, None) for p in parents if p and p not in known)
        edges.setdefault(clique.name, []).extend(p for p in parents if p in known and p != clique.name)
    if unknown:
        yield invalid(f"{CLIQUES}.startsAfter", ",".join(unknown), "unknown cliques; startsAfter must name cliques of this template")
    if found := cycles(edges):
        yield invalid(CLIQUES, found, "clique must not have circular dependencies")


def _parents_errors(path: str, clique: str, parents: Sequence[str]) -> Iterator[FieldError]:
    for parent in parents:
        if not parent:
            yield required(path, "a clique's name must not be empty")
        elif parent == clique:
            yield invalid(path, parent, "a clique cannot start after itself")
    if repeated := duplicates(p for p in parents if p):
        yield duplicate(path, repeated)


def cycles(edges: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Strongly connected components of more than one node (Tarjan), without recursion: templates may have thousands of cliques."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    for root in edges:
        if root in order:
            continue
        work: list[tuple[str, Iterator[str]]] = [(root, iter(edges[root]))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, rest = work[-1]
            child = next(rest, None)
            if child is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == order[node]:
                    component = _pop_until(stack, on_stack, node)
                    found += [component] if len(component) > 1 else []
            elif child not in order:
                order[child] = low[child] = len(order)
                stack.append(child)
                on_stack.add(child)
                work.append((child, iter(edges.get(child, ()))))
            elif child in on_stack:
                low[node] = min(low[node], order[child])
    return found


def _pop_until(stack: list[str], on_stack: set[str], node: str) -> list[str]:
    component: list[str] = []
    while not component or component[-1] != node:
        component.append(stack.pop())
        on_stack.discard(component[-1])
    return component
