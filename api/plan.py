"""What observe, plan and apply hand to each other: keys, operations, plans, outcomes, and the protocols of cache and clock.

A plan is printable data. The executor in controllers/runtime is the only writer; see docs/adr and the module docstrings there.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from api.kinds import Kind
from api.meta import ObjectMeta
from api.reasons import Reason

__all__ = (
    "Apply",
    "ApplyStatus",
    "Bind",
    "CacheView",
    "Clock",
    "Create",
    "Delete",
    "Emit",
    "Index",
    "Key",
    "Manifest",
    "Object",
    "Op",
    "Outcome",
    "PatchStatus",
    "Plan",
    "Ref",
    "SetFinalizers",
    "Stage",
    "Ungate",
    "Why",
    "kind_of",
)

Manifest: TypeAlias = dict[str, Any]
"""A Kubernetes object, or part of one, as JSON data with wire names."""


class Object(Protocol):
    """Any typed object: a msgspec projection or a pydantic custom resource."""

    KIND: ClassVar[Kind]

    @property
    def metadata(self) -> ObjectMeta: ...

    @classmethod
    def decode(cls, raw: Any) -> Any: ...


T = TypeVar("T", bound=Object)


class Key(NamedTuple):
    """Names one object of the kind that a queue or store is about. Cluster-scoped objects have namespace ""."""

    namespace: str
    name: str

    @classmethod
    def of(cls, obj: Object) -> "Key":
        return cls(obj.metadata.namespace, obj.metadata.name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Ref:
    """Names one object of any kind; with a uid it names one life of it."""

    kind: Kind
    namespace: str
    name: str
    uid: str = ""

    @classmethod
    def of(cls, obj: Object) -> "Ref":
        return cls(obj.KIND, obj.metadata.namespace, obj.metadata.name, obj.metadata.uid)

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


@dataclass(frozen=True, slots=True)
class Index:
    """A declared index of a store. `keys` maps an object to the values it is found under (strings that include the namespace)."""

    name: str
    keys: Callable[[Any], Iterable[str]]


class CacheView(Protocol):
    """Read-only facade over all synced stores. Never waits, so a run of calls without an await sees one consistent cut."""

    def get(self, model: type[T], namespace: str, name: str) -> T | None: ...

    def list(self, model: type[T], namespace: str = "") -> Iterable[T]: ...

    def by_index(self, model: type[T], index: Index, value: str) -> tuple[T, ...]: ...


class Clock(Protocol):
    """Wall time for timestamps (aware, UTC) and a monotonic clock in seconds for deadlines."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Create:
    """POST of `manifest` (metadata.namespace and name are set).

    When the name exists: a live object with the same controller owner uid, the same values of `match_labels`, that is not being deleted,
    is our own earlier create and counts as done; otherwise the next of `fallback_names` is tried; otherwise the op fails.
    """

    kind: Kind
    manifest: Manifest
    match_labels: tuple[str, ...] = ()
    fallback_names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply with the controller's field manager, force=true. The manifest states intent only; fields of others are absent.

    `uid`, when set, is sent as metadata.uid so that a re-created object of the same name is not touched.
    """

    kind: Kind
    manifest: Manifest
    uid: str = ""


@dataclass(frozen=True, slots=True)
class ApplyStatus:
    """Server-side apply of `status` (the whole intent of this field manager) to the status subresource of `ref` (uid set)."""

    ref: Ref
    status: Manifest


@dataclass(frozen=True, slots=True)
class PatchStatus:
    """Strategic merge patch of the status of a core kind, where other writers own the other fields. `ref.uid` is a precondition."""

    ref: Ref
    status: Manifest


@dataclass(frozen=True, slots=True)
class SetFinalizers:
    """Merge patch that replaces metadata.finalizers; uid of `ref` and `resource_version` are preconditions."""

    ref: Ref
    finalizers: tuple[str, ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete with preconditions: uid of `ref` always, `resource_version` where the decision depended on the object's state."""

    ref: Ref
    resource_version: str = ""
    grace_period_s: int | None = None


@dataclass(frozen=True, slots=True)
class Ungate:
    """Removes one scheduling gate of a pod and leaves the gates of others."""

    ref: Ref
    gate: str


@dataclass(frozen=True, slots=True)
class Bind:
    """POST pods/binding of the pod `ref` (uid is a precondition) to `node`."""

    ref: Ref
    node: str


@dataclass(frozen=True, slots=True)
class Emit:
    """A Kubernetes event on `ref`. Emitted only on transitions; never blocks or fails a plan."""

    ref: Ref
    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"


Op: TypeAlias = Create | Apply | ApplyStatus | PatchStatus | SetFinalizers | Delete | Ungate | Bind | Emit
Stage: TypeAlias = tuple[Op, ...]


def kind_of(op: Op) -> Kind:
    """The kind of object that an operation is about."""
    return op.kind if isinstance(op, Create | Apply) else op.ref.kind


@dataclass(frozen=True, slots=True)
class Why:
    """A reason with evidence, for people and for metrics."""

    reason: Reason
    message: str
    evidence: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Plan:
    """Ordered stages of operations. Stage n+1 starts only if stage n had no error. An empty plan writes nothing.

    `requeue_at`: when the key has to be looked at again although nothing changed (a deadline), if at all.
    """

    stages: tuple[Stage, ...] = ()
    why: tuple[Why, ...] = ()
    requeue_at: datetime | None = None

    @property
    def ops(self) -> tuple[Op, ...]:
        return tuple(op for stage in self.stages for op in stage)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a reconcile ended, as the workqueue understands it.

    done: forget failures. after: forget failures, look again in `after_s` seconds. conflict: requeue soon and quietly.
    backoff: retry with exponential delay. blocked: the API refused (invalid, forbidden); retry after `after_s` (minutes).
    """

    result: Literal["done", "after", "conflict", "backoff", "blocked"] = "done"
    after_s: float = 0.0
    error: str = ""
    failed_op: Op | None = None
