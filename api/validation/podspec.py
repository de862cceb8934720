"""What is checked of pod specs (grove.md §1.7); the rest is the API server's business when pods are created.

Upstream writes `podSpec.spec` in some paths, which users' tests may look for; checks of our own use the field's real path.
"""

from collections.abc import Iterator

from api.fielderrors import FieldError, duplicate, forbidden, invalid, required
from api.plan import Manifest
from api.quantity import QuantityError, nano
from api.schemaerrors import field_path
from api.validation.names import duplicates, env_name_problem, label_problem
from api.validation.shape import as_list, as_object, as_text

__all__ = ("creation_errors", "pod_spec_errors", "restart_policy_warning")

CONTAINER_LISTS = ("containers", "initContainers")


def pod_spec_errors(path: str, spec: Manifest) -> Iterator[FieldError]:
    """Containers and their environment. `path` is that of the podSpec."""
    if not spec.get("containers") and not _wrong_list(spec.get("containers")):
        yield required(f"{path}.containers", "a pod needs at least one container")
    for field in CONTAINER_LISTS:
        if _wrong_list(spec.get(field)):
            yield invalid(f"{path}.{field}", "object" if isinstance(spec[field], dict) else spec[field], "must be a list of containers")
            continue
        seen: set[str] = set()
        for k, container in enumerate(as_list(spec.get(field))):
            yield from _container_errors(f"{path}.{field}[{k}]", f"{path}.spec.{field}[{k}]", container)
            name = as_text(as_object(container).get("name"))
            if name and name in seen:
                yield duplicate(f"{path}.{field}[{k}]", {"name": name})
            seen.add(name)


def _wrong_list(value: object) -> bool:
    return value is not None and not isinstance(value, list)


def _container_errors(path: str, env_path: str, container: object) -> Iterator[FieldError]:
    if not isinstance(container, dict):
        yield invalid(path, container, "must be an object")
        return
    fields = as_object(container)  # pyright: ignore[reportUnknownArgumentType]
    name = fields.get("name")
    if not name:
        yield required(f"{path}.name", "a container needs a name")
    elif not isinstance(name, str):
        yield invalid(f"{path}.name", name, "must be a string")
    elif problem := label_problem(name):
        yield invalid(f"{path}.name", name, problem)
    yield from _resource_errors(f"{path}.resources", as_object(fields.get("resources")))
    if _wrong_list(fields.get("env")):
        yield invalid(f"{path}.env", "object", "must be a list of variables")
        return
    yield from _env_errors(env_path, as_list(fields.get("env")))


def _resource_errors(path: str, resources: Manifest) -> Iterator[FieldError]:
    for kind in ("limits", "requests"):
        for name, amount in as_object(resources.get(kind)).items():
            try:
                nano(amount if isinstance(amount, (str, int, float)) else "")
            except QuantityError as error:
                yield invalid(f"{path}.{field_path((kind, str(name)))}", amount, str(error))


def _env_errors(path: str, env: list[object]) -> Iterator[FieldError]:
    names: list[str] = []
    for m, variable in enumerate(env):
        name = as_object(variable).get("name")
        if not isinstance(name, str) or not name:
            yield required(f"{path}.env[{m}].name", "an environment variable needs a name")
            continue
        names.append(name)
        if problem := env_name_problem(name):
            yield invalid(f"{path}.env[{m}].name", name, problem)
    for name in duplicates(names):
        yield duplicate(f"{path}.env", name)


def creation_errors(path: str, spec: Manifest) -> Iterator[FieldError]:
    """Fields that gangs and topology packing take over. Only asked when a set is created."""
    if spec.get("topologySpreadConstraints"):
        yield forbidden(f"{path}.spec.topologySpreadConstraints", "must not be set; use topologyConstraint of the PodCliqueSet template")
    if spec.get("nodeName"):
        yield forbidden(f"{path}.spec.nodeName", "must not be set; pods of a gang are placed together by their scheduler")


def restart_policy_warning(spec: Manifest) -> Iterator[str]:
    """Upstream's warning, which it gives for every clique because defaulting sets the field."""
    if spec.get("restartPolicy"):
        yield "restartPolicy will be ignored, it will be set to Always"
