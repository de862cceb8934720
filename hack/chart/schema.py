"""values.schema.json: what the values may be. The part `config` follows from the model of the configuration."""

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from api.operatorconfig import OperatorConfiguration

__all__ = ("schema",)

Schema: TypeAlias = dict[str, Any]
TEXT: Schema = {"type": "string"}
SWITCH: Schema = {"type": "boolean"}
NAMES: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
EXTRA_LABELS: Schema = {**NAMES, "propertyNames": {"not": {"pattern": r"^(app\.kubernetes\.io|helm\.sh)/"}}}
"""Not the chart's own: pods are selected by those."""
ANY_OBJECT: Schema = {"type": "object"}
OBJECTS: Schema = {"type": "array", "items": {"type": "object"}}
DURATION = r"^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$"
LEFT_OUT = ("title", "default", "description")


def schema() -> Schema:
    """Draft 7, which every Helm 3 reads. Unknown keys are refused everywhere but where Kubernetes decides."""
    switch = _object(enabled=SWITCH)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **_object(
            image=_object(
                repository={**TEXT, "minLength": 1},
                tag=TEXT,
                digest={**TEXT, "pattern": "^(sha256:[0-9a-f]{64})?$"},
                pullPolicy={"enum": ["Always", "IfNotPresent", "Never"]},
                pullSecrets={"type": "array", "items": _object(name=TEXT)},
            ),
            extraLabels=EXTRA_LABELS,
            controllers=_process(),
            scheduler=_process(enabled=SWITCH),
            config=_config(),
            crds=_object(install=SWITCH, force=SWITCH),
            rbac=_object(userRoles=SWITCH, ownerReferences=SWITCH),
            metrics=_object(
                service=switch,
                serviceMonitor=_object(enabled=SWITCH, interval={**TEXT, "pattern": DURATION}, labels=NAMES),
            ),
            networkPolicy=switch,
            podDisruptionBudget=_object(
                enabled=SWITCH,
                maxUnavailable={"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]+%$"}]},
            ),
            # Helm gives it to charts that are part of others.
            **{"global": ANY_OBJECT},
        ),
    }


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def _process(**more: Schema) -> Schema:
    return _object(
        **more,
        replicas={"type": "integer", "minimum": 0},
        resources=ANY_OBJECT,
        nodeSelector=NAMES,
        tolerations=OBJECTS,
        affinity=ANY_OBJECT,
        topologySpread={"enum": ["ScheduleAnyway", "DoNotSchedule"]},
        priorityClassName=TEXT,
        podAnnotations=NAMES,
        serviceAccount=_object(annotations=NAMES),
    )


def _config() -> Schema:
    """Without apiVersion and kind, which the chart adds."""
    whole = OperatorConfiguration.model_json_schema(by_alias=True)
    found = _plain(whole, whole["$defs"])
    found["properties"] = {k: v for k, v in found["properties"].items() if k not in ("apiVersion", "kind")}
    return found


def _plain(part: Any, definitions: Mapping[str, Any]) -> Any:
    """References filled in, annotations left out, durations as we write them."""
    if isinstance(part, list):
        return [_plain(p, definitions) for p in cast("list[Any]", part)]
    if not isinstance(part, dict):
        return part
    fields = cast("Schema", part)
    if "$ref" in fields:
        return _plain(definitions[fields["$ref"].rpartition("/")[2]], definitions)
    if fields.get("format") == "duration":
        return {**TEXT, "pattern": DURATION}
    # The names of properties are ours, whatever they are called; the other keys are the schema's.
    return {
        k: {name: _plain(p, definitions) for name, p in v.items()} if k == "properties" else _plain(v, definitions)
        for k, v in fields.items()
        if k not in ("$defs", *LEFT_OUT)
    }
