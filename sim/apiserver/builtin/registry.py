"""Every resource of a plain cluster, with the behaviour of its kind."""

from collections.abc import Mapping

from sim.apiserver.builtin.access import REVIEWS
from sim.apiserver.builtin.base import Builtin
from sim.apiserver.builtin.rows import CREATE, ROWS, Row
from sim.apiserver.builtin.strategies import ACTIONS, STRATEGIES
from sim.apiserver.resources import Resource, Strategy, Version
from sim.apiserver.schema.builtin import schema_of

__all__ = ("builtin_resources",)


def builtin_resources(strategies: Mapping[tuple[str, str], Strategy] | None = None) -> tuple[Resource, ...]:
    """All built-in resources. `strategies`: (group, plural) -> behaviour over ours, such as that of CustomResourceDefinitions."""
    given = strategies or {}
    return tuple(_resource(row, given.get((row.group, row.plural))) for row in ROWS)


def _resource(row: Row, strategy: Strategy | None) -> Resource:
    return Resource(
        group=row.group,
        plural=row.plural,
        kind=row.kind,
        versions=tuple(_version(row, name) for name in row.versions),
        storage=row.versions[0],
        is_namespaced=row.is_namespaced,
        strategy=strategy or STRATEGIES.get((row.group, row.plural)) or Builtin(),
        singular=row.kind.lower(),
        list_kind="" if row.verbs == CREATE else row.kind + "List",
        short_names=tuple(row.short.split()),
        categories=tuple(row.categories.split()),
        verbs=row.verbs,
        subresources=row.subresources,
        actions=ACTIONS.get(row.plural, {}) if not row.group else {},
        review=REVIEWS.get(row.plural),
        delegate=("pods", "binding") if row.plural == "bindings" else None,
        stored_as=("", "events") if row.group == "events.k8s.io" else None,
    )


def _version(row: Row, name: str) -> Version:
    return Version(name, schema_of(row.group, name, row.kind), has_status=row.has_status, scale=row.scale)
