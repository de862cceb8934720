"""Object metadata and the two bases that every typed object derives from.

Core kinds are msgspec projections (only the fields we read, decoded in microseconds); custom resources are pydantic models (every field).
Both share one `ObjectMeta` and the attributes `KIND`, `metadata` and `decode`, which is all that stores, indexes and handlers need.
managedFields are never decoded, so they are not kept in memory.
"""

from datetime import datetime
from functools import cache
from typing import Any, ClassVar, Self, cast

import msgspec
from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema

from api.kinds import Kind

__all__ = ("CoreObject", "CoreStruct", "CustomModel", "CustomObject", "ObjectMeta", "OwnerReference")


class CoreStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of projections: immutable, camelCase on the wire, unknown fields ignored."""


class OwnerReference(CoreStruct, frozen=True):
    """metav1.OwnerReference."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(CoreStruct, frozen=True):
    """metav1.ObjectMeta without managedFields. `resource_version` is opaque text that compares as an unbounded integer."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def deleting(self) -> bool:
        """True once the API server has accepted a delete."""
        return self.deletion_timestamp is not None

    @property
    def controller(self) -> OwnerReference | None:
        """The one owner with controller=true, if any."""
        return next((o for o in self.owner_references if o.controller), None)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Lets pydantic models carry this struct; a malformed value becomes an ordinary validation error."""

        def validate(value: object) -> "ObjectMeta":
            if isinstance(value, ObjectMeta):
                return value
            try:
                return msgspec.convert(_without_nulls(value), ObjectMeta)
            except msgspec.ValidationError as error:
                raise ValueError(str(error)) from error

        def serialize(value: "ObjectMeta") -> Any:
            return msgspec.to_builtins(value)

        return core_schema.no_info_plain_validator_function(
            validate, serialization=core_schema.plain_serializer_function_ser_schema(serialize)
        )


@cache
def _decoder(model: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(model)


def _without_nulls(value: object) -> object:
    """A null field means an absent one, as the API server reads it."""
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, object]", value)
    return {name: field for name, field in fields.items() if field is not None}


class CoreObject(CoreStruct, frozen=True):
    """A projected core kind."""

    KIND: ClassVar[Kind]

    metadata: ObjectMeta = ObjectMeta()

    @classmethod
    def decode(cls, raw: bytes | msgspec.Raw) -> Self:
        """Decodes one JSON object; raises msgspec.DecodeError (ValidationError included) on malformed input."""
        return _decoder(cls).decode(raw)


class CustomModel(BaseModel):
    """Base of custom resource models and their parts: immutable, camelCase on the wire.

    Unknown fields are ignored when decoding what an API server sent (a newer CRD may have more) and refused for user input,
    where callers pass `extra="forbid"`.
    """

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore", strict=True)

    def to_manifest(self) -> dict[str, Any]:
        """JSON data with wire names, unset and null fields left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)


class CustomObject(CustomModel):
    """A custom resource."""

    KIND: ClassVar[Kind]

    metadata: ObjectMeta

    @classmethod
    def decode(cls, raw: bytes | msgspec.Raw) -> Self:
        """Decodes one JSON object; raises pydantic.ValidationError on malformed input."""
        return cls.model_validate_json(bytes(raw))
