"""Carries out writes of built-in kinds with nothing but their hooks: no routing, storage, schemas or field ownership."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any

from sim.apiserver import metadata as meta
from sim.apiserver.builtin.registry import builtin_resources
from sim.apiserver.objects import Object, copied
from sim.apiserver.requests import ADMIN
from sim.apiserver.resources import Context, Effect, Resource
from sim.apiserver.status import already_exists, invalid, not_found

__all__ = ("KindWorld", "merged")

NOW = datetime(2026, 11, 30, tzinfo=UTC)
RESOURCES = {(r.group, r.plural): r for r in builtin_resources()}


def merged(target: Any, patch: Any) -> Any:
    """JSON merge patch."""
    if not isinstance(patch, dict):
        return copied(patch)
    out = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = merged(out.get(key), value)
    return out


@dataclass
class KindWorld:
    """Objects by (group, plural, namespace, name), and what clients do to them. Refusals are StatusErrors."""

    objects: dict[tuple[str, str, str, str], Object] = field(default_factory=dict)
    rng: Random = field(default_factory=lambda: Random(1))  # noqa: S311 - reproducible

    def get(self, group: str, plural: str, namespace: str, name: str) -> Object | None:
        return self.objects.get((group, plural, namespace, name))

    def list(self, group: str, plural: str, namespace: str = "") -> Sequence[Object]:
        return [o for (g, p, n, _), o in self.objects.items() if (g, p) == (group, plural) and namespace in ("", n)]

    @property
    def ctx(self) -> Context:
        return Context(ADMIN, NOW, self.rng, self)

    def create(self, plural: str, obj: Object, group: str = "", namespace: str = "test") -> Object:
        resource = RESOURCES[group, plural]
        obj = copied(obj)
        metadata = meta.opened(obj)
        if resource.is_namespaced:
            metadata["namespace"] = namespace
        obj["apiVersion"], obj["kind"] = resource.api_version(resource.storage), resource.kind
        strategy = resource.strategy
        strategy.default(obj)
        meta.prepare_create(obj["metadata"], NOW, self.rng, strategy.generation)
        strategy.prepare_create(self.ctx, obj)
        name = obj["metadata"].get("name", "")
        check = strategy.name_check
        found = meta.validate(obj["metadata"], namespaced=resource.is_namespaced, name_errors=check(name) if check else ())
        self._refuse(resource, name, [*found, *strategy.validate_create(self.ctx, obj)])
        key = (group, plural, namespace if resource.is_namespaced else "", name)
        if key in self.objects:
            raise already_exists(group, plural, name)
        obj["metadata"]["resourceVersion"] = "7"
        self.objects[key] = obj
        return obj

    def patch(self, plural: str, name: str, patch: Object, subresource: str = "", group: str = "", namespace: str = "test") -> Object:
        resource = RESOURCES[group, plural]
        key = (group, plural, namespace if resource.is_namespaced else "", name)
        old = self.objects.get(key)
        if old is None:
            raise not_found(group, plural, name)
        obj = merged(old, patch)
        if subresource == "status":
            obj = {**old, "metadata": obj["metadata"], "status": obj.get("status")}
        elif resource.version(resource.storage).has_status and not subresource:  # type: ignore[union-attr]
            obj.pop("status", None)
            if "status" in old:
                obj["status"] = old["status"]
        obj = copied(obj)
        strategy = resource.strategy
        strategy.default(obj)
        meta.opened(obj)
        strategy.prepare_update(self.ctx, obj, old, subresource)
        changed = {k: v for k, v in obj.items() if k not in ("metadata", "status")}
        if strategy.generation and changed != {k: v for k, v in old.items() if k not in ("metadata", "status")}:
            obj["metadata"]["generation"] = old["metadata"]["generation"] + 1
        found = meta.validate_update(obj["metadata"], old["metadata"])
        self._refuse(resource, name, [*found, *strategy.validate_update(self.ctx, obj, old, subresource)])
        self.objects[key] = obj
        return obj

    def act(self, plural: str, name: str, action: str, body: Object, namespace: str = "test") -> Effect:
        key = ("", plural, namespace, name)
        effect = RESOURCES["", plural].actions[action](self.ctx, self.objects[key], body)
        self.carry_out(key, effect)
        return effect

    def carry_out(self, key: tuple[str, str, str, str], effect: Effect) -> None:
        if effect.changed is not None:
            self.objects[key] = effect.changed
        for group, other, obj in effect.others:
            self.objects[group, other, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]] = obj
        if effect.delete_options is not None:
            del self.objects[key]

    @staticmethod
    def _refuse(resource: Resource, name: str, errors: Sequence[Any]) -> None:
        if errors:
            raise invalid(resource.group, resource.kind, name, errors)
