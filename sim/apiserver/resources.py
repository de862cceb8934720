"""Resources: what the server serves, and the behaviour of each kind as hooks of the request pipeline."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any, NamedTuple, Protocol, TypeAlias

from api.fielderrors import FieldError
from sim.apiserver.objects import Object
from sim.apiserver.requests import User
from sim.apiserver.schema.model import ANY, Schema

__all__ = ("Action", "Column", "Context", "Effect", "Lookup", "ObjectKey", "Resource", "Scale", "Strategy", "Subresource", "Version")


class ObjectKey(NamedTuple):
    """Names one object of a resource; namespace "" for cluster scope."""

    namespace: str
    name: str


class Lookup(Protocol):
    """Reads other objects while a request is handled. Results must not be changed."""

    def get(self, group: str, plural: str, namespace: str, name: str) -> Object | None:
        """A stored object (in its storage version), or None."""
        ...

    def list(self, group: str, plural: str, namespace: str = "") -> Sequence[Object]:
        """All stored objects, of a namespace or of all ("")."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """What hooks may know besides the object. `now`: aware UTC. `rng`: for generated names and the like."""

    user: User
    now: datetime
    rng: Random
    lookup: Lookup
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column of Table output. `path`: simple JSONPath (.spec.replicas) of a custom resource, or `value` computes the cell (built-ins).

    type: string, integer, number, boolean or date; priority above 0 shows with -o wide only.
    """

    name: str
    type: str
    path: str = ""
    value: Callable[[Object, datetime], Any] | None = None
    description: str = ""
    format: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a scale subresource reads and writes: paths such as .spec.replicas."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""


@dataclass(frozen=True, slots=True)
class Version:
    """One served version of a resource. `schema` is that of the whole object."""

    name: str
    schema: Schema = ANY
    is_served: bool = True
    has_status: bool = False
    scale: Scale | None = None
    columns: tuple[Column, ...] = ()
    selectable: tuple[str, ...] = ()
    deprecation: str = ""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a POST to a subresource does: replaces the object by `changed`, deletes it with `delete_options` (DeleteOptions), or neither;
    and what is answered. `others`: (group, plural, object) that replace stored objects at the same time; generation counts none of it."""

    answer: Object
    status: int = 201
    changed: Object | None = None
    delete_options: Object | None = None
    others: tuple[tuple[str, str, Object], ...] = ()


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource besides status and scale, as discovery lists it. `group`, `version`, `kind`: of what is sent ("": the resource's).

    With the verb update it is the whole object, written with `subresource` set in the hooks (ephemeralcontainers, resize, finalize);
    with create alone it is answered by Resource.actions; all others (log, exec, proxy) need a kubelet and are not answered.
    """

    kind: str
    verbs: tuple[str, ...]
    group: str = ""
    version: str = ""


Action: TypeAlias = Callable[["Context", Object, Object], Effect]
"""POST to a subresource such as binding: of the stored object and the decoded body. Raises StatusError."""


class Strategy:
    """Behaviour of a kind; the base is that of a plain custom resource with a status subresource.

    Hooks may change `obj`, which is a private copy, and never `old`. They are synchronous and see only what the Context gives them.
    `subresource`: "" for the object itself, else "status", "scale", "ephemeralcontainers", "resize"...
    The pipeline itself does: name and namespace checks, uid, creationTimestamp, generation, resourceVersion, managedFields, finalizers,
    preconditions, schema validation of custom resources, and that a status write changes nothing but status (and the other way round).
    """

    generation = True
    """Whether metadata.generation counts changes of anything outside metadata and status."""
    may_create_on_update = False
    """Whether PUT of a missing object creates it."""
    may_update_unconditionally = False
    """Whether PUT may come without resourceVersion."""
    returns_deleted = False
    """Whether DELETE answers the object itself even when it is gone at once."""
    orphans = False
    """Whether a DELETE that names no policy leaves dependents alone."""
    orphan_warning = ""
    """What a DELETE that names no policy is told."""
    unselectable = "field label not supported: {}"
    """What a field selector with another field is told."""
    name_check: Callable[[str], Sequence[str]] | None = None
    """Returns what is wrong with a name; None: DNS-1123 subdomain."""

    def default(self, obj: Object) -> None:
        """Fills in defaults that the schema cannot express."""

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        """Before validation of a create: drop what clients may not set, allocate what the server sets."""

    def prepare_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> None:
        """Before validation of an update."""

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        return []

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        return []

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        """Fields that field selectors may name, besides metadata.name and metadata.namespace."""
        return {}

    def grace_s(self, ctx: Context, obj: Object, wanted: int | None) -> int:
        """Seconds that a deletion waits for somebody (the kubelet) to confirm it; 0 deletes at once. `wanted`: gracePeriodSeconds."""
        return 0

    def is_graceful(self) -> bool:
        """Whether gracePeriodSeconds means anything for this kind."""
        return False

    def prepare_delete(self, ctx: Context, obj: Object) -> None:
        """Called on a copy that gets a deletionTimestamp and stays (namespaces: phase Terminating)."""

    def validate_delete(self, ctx: Context, obj: Object) -> None:
        """Raises StatusError when the object may not be deleted at all."""

    def is_held(self, obj: Object) -> bool:
        """Whether something besides metadata.finalizers keeps an object that is being deleted (namespaces: spec.finalizers)."""
        return False

    def convert(self, obj: Object, api_version: str) -> Object:
        """The same object in another version of its kind; never changes `obj`. Not called when a webhook converts."""
        return {**obj, "apiVersion": api_version}


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One kind that is served. `storage`: name of the version in which objects are kept. `conversion`: spec.conversion of a CRD whose
    objects a webhook converts."""

    group: str
    plural: str
    kind: str
    versions: tuple[Version, ...]
    storage: str
    is_namespaced: bool = True
    strategy: Strategy = field(default_factory=Strategy)
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    is_custom: bool = False
    subresources: Mapping[str, Subresource] = field(default_factory=dict[str, Subresource])
    conversion: Object | None = None
    actions: Mapping[str, Action] = field(default_factory=dict[str, Action])
    review: Callable[[Context, Object], Object] | None = None
    """Of resources that are never stored (SelfSubjectAccessReview): from the posted object to the answered one."""
    delegate: tuple[str, str] | None = None
    """(plural, subresource) of the same group that a POST to the collection means, of the object named in the body: bindings."""
    stored_as: tuple[str, str] | None = None
    """(group, plural) of the resource whose objects these are in another group: events of events.k8s.io. Strategy.convert knows both."""

    def version(self, name: str) -> Version | None:
        """A served version by name."""
        return next((v for v in self.versions if v.name == name and v.is_served), None)

    def api_version(self, version: str) -> str:
        """`apiVersion` of objects in a version."""
        return f"{self.group}/{version}" if self.group else version

    @property
    def place(self) -> tuple[str, str]:
        """(group, plural) under which objects are stored."""
        return self.stored_as or (self.group, self.plural)

    @property
    def stored_version(self) -> str:
        """`apiVersion` of stored objects."""
        group = self.place[0]
        return f"{group}/{self.storage}" if group else self.storage
