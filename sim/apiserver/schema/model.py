"""The compiled form of a schema, made once from OpenAPI v3 (built-in kinds) or from a CRD's openAPIV3Schema."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from sim.apiserver.objects import Object

__all__ = ("ABSENT", "ANY", "Rule", "Schema")


class _Absent:
    """No default. A class of its own, because null is one."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


@dataclass(frozen=True, slots=True)
class Rule:
    """One x-kubernetes-validations entry, compiled. `check` gets self and oldSelf (ABSENT where there is none).

    `check` returns True when satisfied; raises ValueError with the evaluator's message. `transition`: the rule reads oldSelf.
    """

    rule: str
    check: Callable[[Any, Any], bool]
    transition: bool = False
    optional_old_self: bool = False
    message: str = ""
    message_of: Callable[[Any, Any], str] | None = None
    reason: str = "FieldValueInvalid"
    field_path: str = ""


@dataclass(slots=True, eq=False)
class Schema:
    """One node. Nodes may refer to each other in cycles (JSONSchemaProps does), so never walk a schema without an object beside it.

    name: of the Go type of a built-in kind, such as Container. type: "object", "array", "string", "integer", "number", "boolean", or ""
    for anything. `values`: schema of the values of a map (additionalProperties). list_type, list_keys, is_atomic_map:
    x-kubernetes-list-type, -list-map-keys, -map-type; lists without a type are atomic for server-side apply. is_open:
    x-kubernetes-preserve-unknown-fields. patch_strategy, patch_key: of strategic merge patches, with several strategies as written
    ("merge,retainKeys"). has_rules, has_casts: whether the node or one below it has rules, or values that rules see in another form than
    JSON's (timestamps, doubles); has_unique, has_embedded: lists of type set or map, embedded
    resources; has_bounds: whether `source` restricts values beyond their type. logic: allOf, anyOf, oneOf, not.
    defaults: those of `properties`, by key. `source` is the node as it was written, for everything that is rarely asked: pattern, enum,
    bounds, description.
    """

    type: str = ""
    format: str = ""
    name: str = ""
    properties: dict[str, "Schema"] = field(default_factory=dict[str, "Schema"])
    required: tuple[str, ...] = ()
    values: "Schema | None" = None
    items: "Schema | None" = None
    list_type: Literal["atomic", "set", "map"] = "atomic"
    list_keys: tuple[str, ...] = ()
    is_atomic_map: bool = False
    is_open: bool = False
    is_int_or_string: bool = False
    is_embedded: bool = False
    is_nullable: bool = False
    default: Any = ABSENT
    patch_strategy: str = ""
    patch_key: str = ""
    rules: tuple[Rule, ...] = ()
    has_rules: bool = False
    has_bounds: bool = False
    has_casts: bool = False
    has_unique: bool = False
    has_embedded: bool = False
    logic: dict[str, tuple["Schema", ...]] = field(default_factory=dict[str, tuple["Schema", ...]])
    defaults: dict[str, Any] = field(default_factory=dict[str, Any])
    source: Object = field(default_factory=dict[str, Any])

    def field(self, name: str) -> "Schema | None":
        """Schema of a key of an object or map; None: unknown."""
        return self.properties.get(name) or self.values


ANY: Final = Schema(is_open=True)
"""Knows nothing and allows everything."""
