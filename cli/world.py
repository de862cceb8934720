"""A cluster in memory for `render`: runs the controllers' plans until none creates or changes an object any more.

It plays the API server's part only as far as plans need it: uids, generations, and the token that fills a service account secret.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from api import labels
from api.core import (
    HorizontalPodAutoscaler,
    Pod,
    ResourceClaim,
    ResourceClaimTemplate,
    Role,
    RoleBinding,
    Secret,
    Service,
    ServiceAccount,
)
from api.grove import ClusterTopologyBinding, PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.kinds import Kind
from api.operatorconfig import OperatorConfiguration
from api.plan import Apply, Create, Delete, Index, Key, Manifest, Object, Plan, SetFinalizers
from api.podgang import PodGang
from api.settings import settings_of
from controllers.podclique import observe as podclique_observe
from controllers.podclique import plan as podclique_plan
from controllers.podcliquescalinggroup import observe as group_observe
from controllers.podcliquescalinggroup import plan as group_plan
from controllers.podcliqueset import observe as set_observe
from controllers.podcliqueset import plan as set_plan
from controllers.podgang import observe as gang_observe
from controllers.podgang import plan as gang_plan

__all__ = ("World",)

MODELS: tuple[type[Any], ...] = (
    PodCliqueSet,
    ServiceAccount,
    Role,
    RoleBinding,
    Secret,
    Service,
    HorizontalPodAutoscaler,
    ResourceClaim,
    PodCliqueScalingGroup,
    PodClique,
    PodGang,
    Pod,
    ClusterTopologyBinding,
    ResourceClaimTemplate,
)
START = datetime(2000, 1, 1, tzinfo=UTC)
MAX_PASSES = 20


class World:
    """Objects by model and key: `manifests` as they were written, typed ones for the CacheView that observations read."""

    def __init__(self, config: OperatorConfiguration) -> None:
        self.config = config
        self.manifests: dict[tuple[Kind, Key], Manifest] = {}
        self._models = {m.KIND: m for m in MODELS}
        self._typed: dict[type[Any], dict[Key, Any]] = {m: {} for m in MODELS}
        self._indexes: dict[tuple[type[Any], str], dict[str, list[Any]]] = {}
        self._serial = 0

    def get(self, model: type[Any], namespace: str, name: str) -> Any:
        """CacheView.get."""
        return self._typed[model].get(Key(namespace, name))

    def list(self, model: type[Any], namespace: str = "") -> Iterable[Any]:
        """CacheView.list."""
        return [o for k, o in self._typed[model].items() if not namespace or k.namespace == namespace]

    def by_index(self, model: type[Any], index: Index, value: str) -> tuple[Any, ...]:
        """CacheView.by_index; an index is built when first asked for and thrown away with the next write of that model."""
        built = self._indexes.get((model, index.name))
        if built is None:
            built = self._indexes[model, index.name] = {}
            for obj in self._typed[model].values():
                for key in index.keys(obj):
                    built.setdefault(key, []).append(obj)
        return tuple(built.get(value, ()))

    def put(self, manifest: Manifest) -> None:
        """Stores an object, new or changed, the way an API server would return it."""
        model = self._model(manifest)
        meta: Manifest = manifest["metadata"]
        key = Key(meta.get("namespace", ""), meta["name"])
        old = self._typed[model].get(key)
        self._serial += 1
        seen: Manifest = {
            **meta,
            "uid": old.metadata.uid if old else f"uid-{self._serial}",
            "resourceVersion": str(self._serial),
            "generation": 1,
        }
        if manifest.get("type") == "kubernetes.io/service-account-token":
            seen["annotations"] = {**seen.get("annotations", {}), "kubernetes.io/service-account.uid": "minted"}
        self.manifests[model.KIND, key] = {**manifest, "metadata": {**meta, "uid": seen["uid"]}}
        self._typed[model][key] = model.decode(msgspec.json.encode({**manifest, "metadata": seen}))
        self._forget(model)

    def remove(self, model: type[Any], key: Key) -> None:
        """Takes an object away at once, without finalizers or garbage collection."""
        del self.manifests[model.KIND, key]
        del self._typed[model][key]
        self._forget(model)

    def settle(self) -> None:
        """Runs all controllers until nothing changes. Raises RuntimeError when that does not happen (a defect, not a user's mistake)."""
        for _ in range(MAX_PASSES):
            wrote = [self._pass(model, step) for model, step in self._controllers()]
            if not any(wrote):
                return
        raise RuntimeError("the plans do not settle")

    def _controllers(self) -> tuple[tuple[type[Any], Callable[[Key], Plan | None]], ...]:
        settings = settings_of(self.config)

        def step(observe: Callable[[Key], Any], plan: Callable[[Any], Plan]) -> Callable[[Key], Plan | None]:
            def run(key: Key) -> Plan | None:
                seen = observe(key)
                return plan(seen) if seen is not None else None

            return run

        return (
            (PodCliqueSet, step(lambda k: set_observe.observe(self, k, START, self.config), set_plan.plan)),
            (PodCliqueScalingGroup, step(lambda k: group_observe.observe(self, k, START), group_plan.plan)),
            (PodClique, step(lambda k: podclique_observe.observe(self, k, START, settings), podclique_plan.plan)),
            (PodGang, step(lambda k: gang_observe.observe(self, k, START, settings), gang_plan.plan)),
        )

    def _pass(self, model: type[Any], step: Callable[[Key], Plan | None]) -> bool:
        """One plan for each object of a kind; True when something was written."""
        wrote = False
        for key in list[Key](self._typed[model]):
            plan = step(key)
            for op in plan.ops if plan is not None else ():
                if isinstance(op, Create | Apply):
                    self.put(op.manifest)
                    wrote = True
                elif isinstance(op, SetFinalizers):
                    self._set_finalizers(op)
                    wrote = True
                elif isinstance(op, Delete):
                    self.remove(self._models[op.ref.kind], op.ref.key)
                    wrote = True
        return wrote

    def _set_finalizers(self, op: SetFinalizers) -> None:
        live = self.manifests[op.ref.kind, op.ref.key]
        self.put({**live, "metadata": {**live["metadata"], "finalizers": list(op.finalizers)}})

    def _model(self, manifest: Manifest) -> type[Object]:
        found = (m for m in MODELS if (m.KIND.api_version, m.KIND.kind) == (manifest["apiVersion"], manifest["kind"]))
        return next(found)

    def _forget(self, model: type[Any]) -> None:
        for stale in [k for k in self._indexes if k[0] is model]:
            del self._indexes[stale]

    def kinds(self) -> tuple[Kind, ...]:
        """Kinds in the order of output."""
        return tuple(self._models)

    def of_kind(self, kind: Kind) -> tuple[Manifest, ...]:
        """Manifests of a kind in order of creation."""
        return tuple(m for (k, _), m in self.manifests.items() if k == kind)

    def pod_names(self) -> dict[str, str]:
        """Generated pod name → `<clique>-#<index>`, the name that does not depend on uids."""
        pods: Iterable[Pod] = self._typed[Pod].values()
        return {p.metadata.name: f"{p.metadata.labels[labels.PODCLIQUE]}-#{p.metadata.labels[labels.POD_INDEX]}" for p in pods}
