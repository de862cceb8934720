"""Field types and parts that the custom resource models share, and their base `Resource`.

Docstrings below attributes are the field descriptions of the CRDs.
"""

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from pydantic import AwareDatetime, BeforeValidator, ConfigDict, Field, PlainSerializer, Strict, ValidationInfo, field_validator

from api.kinds import Kind
from api.meta import CustomModel, CustomObject
from api.timestamps import rfc3339

__all__ = ("Condition", "Int32", "Int64", "Items", "JsonObject", "LastError", "Part", "Resource", "Timestamp", "null_as")

T = TypeVar("T")

Int32: TypeAlias = Annotated[int, Field(ge=-(2**31), le=2**31 - 1, json_schema_extra={"format": "int32"})]
Int64: TypeAlias = Annotated[int, Field(ge=-(2**63), le=2**63 - 1, json_schema_extra={"format": "int64"})]
Items: TypeAlias = Annotated[tuple[T, ...], Strict(False)]
"""A list on the wire. Not strict itself, so that a Python list is taken too; its items are as strict as ever."""
JsonObject: TypeAlias = dict[str, Any]
"""JSON data that is carried whole and never interpreted by the model."""


def _moment(value: object) -> object:
    """Text to datetime, also where the input is not JSON; everything else is left to the strict check."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


Timestamp: TypeAlias = Annotated[AwareDatetime, BeforeValidator(_moment), PlainSerializer(rfc3339, when_used="json")]
"""metav1.Time: an aware datetime; RFC 3339 in UTC with second precision on the wire."""


def null_as(default: object) -> BeforeValidator:
    """Reads an explicit null as `default`, which is what the API server makes of a null in a field with a default."""

    def fill(value: object) -> object:
        return default if value is None else value

    return BeforeValidator(fill)


class Part(CustomModel):
    """Base of the parts of a resource."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Condition(Part):
    """One aspect of an object's state, in the form that all Kubernetes tools read."""

    type: str
    """What the condition is about; one entry per type."""
    status: Literal["True", "False", "Unknown"]
    """Whether the condition holds."""
    reason: str = ""
    """Why the status is what it is, as one word for programs."""
    message: str = ""
    """The same for people."""
    last_transition_time: Timestamp | None = None
    """When the status last changed; other changes leave it alone."""
    observed_generation: Int64 | None = None
    """Generation of the object that the condition was computed from."""


class LastError(Part):
    """An error of the last reconcile."""

    code: str
    """Stable code of the error."""
    description: str
    """What failed."""
    observed_at: Timestamp | None = None
    """When it happened."""


class Resource(CustomObject):
    """A custom resource of ours or of Grove. `apiVersion` and `kind` may be missing on input, but not differ from KIND."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    KIND: ClassVar[Kind]

    api_version: str = ""
    kind: str = ""

    @field_validator("api_version", "kind")
    @classmethod
    def _of_this_kind(cls, value: str, info: ValidationInfo) -> str:
        expected = cls.KIND.api_version if info.field_name == "api_version" else cls.KIND.kind
        if value != expected:
            raise ValueError(f"is {value!r}, expected {expected!r}")
        return value

    def to_manifest(self) -> dict[str, Any]:
        """The whole object as JSON data, `apiVersion` and `kind` always included."""
        return {"apiVersion": self.KIND.api_version, "kind": self.KIND.kind, **super().to_manifest()}
