"""What the admission plugins of a plain API server make of pods: priority, tolerations for failing nodes, runtime classes."""

from typing import Any, Final

from sim.apiserver.objects import Object
from sim.apiserver.resources import Context
from sim.apiserver.status import StatusError, forbidden

__all__ = ("admit_create", "admit_update")

_SCHEDULING: Final = "scheduling.k8s.io"
_DEFAULT_POLICY: Final = "PreemptLowerPriority"
_FAILING: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_ADDED: Final[tuple[Object, ...]] = tuple(
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300} for key in _FAILING
)


def admit_create(ctx: Context, name: str, spec: Object) -> None:
    """Changes the spec of a new pod. Raises StatusError."""
    _prioritize(ctx, name, spec)
    _tolerate(spec)
    if (runtime := spec.get("runtimeClassName")) and ctx.lookup.get("node.k8s.io", "runtimeclasses", "", runtime) is None:
        raise _rejected(name, f'pod rejected: RuntimeClass "{runtime}" not found')
    if not runtime and spec.get("overhead"):
        raise _rejected(name, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")


def admit_update(spec: Object, old: Object) -> None:
    """Changes the spec of an updated pod: what the first admission set comes back when the client leaves it out."""
    for key in ("priority", "preemptionPolicy"):
        if spec.get(key) is None and old.get(key) is not None:
            spec[key] = old[key]
    _tolerate(spec)


def _prioritize(ctx: Context, name: str, spec: Object) -> None:
    class_name: str = spec.get("priorityClassName") or ""
    if class_name:
        found = ctx.lookup.get(_SCHEDULING, "priorityclasses", "", class_name)
        if found is None:
            raise _rejected(name, f"no PriorityClass with name {class_name} was found")
    else:
        found = _default_class(ctx)
        if found is not None:
            spec["priorityClassName"] = found["metadata"]["name"]
    value: int = found["value"] if found else 0
    policy: str = found.get("preemptionPolicy", _DEFAULT_POLICY) if found else _DEFAULT_POLICY
    _agree(name, spec.get("priority"), value, "the integer value of priority")
    _agree(name, spec.get("preemptionPolicy"), policy, "the string value of PreemptionPolicy")
    spec["priority"], spec["preemptionPolicy"] = value, policy


def _default_class(ctx: Context) -> Object | None:
    """The class of pods that name none: of several defaults the one with the lowest value."""
    defaults = [c for c in ctx.lookup.list(_SCHEDULING, "priorityclasses") if c.get("globalDefault")]
    return min(defaults, key=lambda c: (c["value"], c["metadata"]["name"])) if defaults else None


def _agree(name: str, given: Any, computed: Any, what: str) -> None:
    if given is not None and given != computed:
        text = f"{what} ({given}) must not be provided in pod spec; priority admission controller computed {computed} from the given"
        raise _rejected(name, f"{text} PriorityClass name")


def _tolerate(spec: Object) -> None:
    tolerations: list[Object] = spec.get("tolerations") or []
    missing = list(_ADDED)
    for toleration in tolerations:
        if toleration.get("effect") in (None, "", "NoExecute"):
            key = toleration.get("key")
            missing = [m for m in missing if key and key != m["key"]]
    if missing:
        spec["tolerations"] = [*tolerations, *missing]


def _rejected(name: str, why: str) -> StatusError:
    return forbidden("", "pods", name, why)
