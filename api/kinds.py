"""Kinds of the Kubernetes API that Grovekeeper reads or writes: where they live and how their paths are built."""

from dataclasses import dataclass

__all__ = ("Kind",)


@dataclass(frozen=True, slots=True)
class Kind:
    """One resource: API group ("" is core), version, kind, plural and scope."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`apiVersion` as manifests carry it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """`plural.group`, the name that RBAC, metrics and messages use."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Request path of the collection (no name), an object, or a subresource of it. Without a namespace: all namespaces."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)

    def __str__(self) -> str:
        return self.kind
