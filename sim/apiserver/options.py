"""Query parameters and option objects of requests, checked as kube-apiserver does."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.fielderrors import FieldError, forbidden, invalid, not_supported, required, too_long
from sim.apiserver.objects import Object
from sim.apiserver.status import StatusError, bad_request
from sim.apiserver.status import invalid as invalid_status

__all__ = ("DeleteOptions", "ListOptions", "WriteOptions", "delete_options", "list_options", "write_options")

TRUE = frozenset({"", "1", "t", "T", "true", "TRUE", "True"})
"""An empty value means true for parameters that are booleans, as in `?watch`."""
FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})
VALIDATIONS = ("Ignore", "Strict", "Warn")
PROPAGATIONS = ("Background", "Foreground", "Orphan")
MAX_MANAGER = 128
MATCH = "resourceVersionMatch"


@dataclass(frozen=True, slots=True)
class ListOptions:
    """Of list, watch and deletecollection. Empty strings are absent ones."""

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    match: str = ""
    limit: int = 0
    continue_token: str = ""
    timeout_s: int = 0
    is_watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Of create, update and patch. `validation`: Strict, Warn or Ignore; `force` only for apply."""

    is_dry_run: bool = False
    manager: str = ""
    validation: str = "Warn"
    force: bool | None = None


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Of delete. `grace_s` None: the kind's default; `propagation` "": the kind's default."""

    is_dry_run: bool = False
    grace_s: int | None = None
    propagation: str = ""
    uid: str | None = None
    resource_version: str | None = None


def list_options(query: Mapping[str, str]) -> ListOptions:
    """Raises StatusError 400 for values that cannot be read and 422 for combinations that make no sense."""
    initial = query.get("sendInitialEvents")
    options = ListOptions(
        query.get("labelSelector", ""),
        query.get("fieldSelector", ""),
        query.get("resourceVersion", ""),
        query.get("resourceVersionMatch", ""),
        _integer(query, "limit"),
        query.get("continue", ""),
        _integer(query, "timeoutSeconds"),
        _flag(query, "watch"),
        _flag(query, "allowWatchBookmarks"),
        None if initial is None else _flag(query, "sendInitialEvents"),
    )
    if errors := _combined(options):
        raise invalid_status("meta.k8s.io", "ListOptions", "", errors)
    return options


def write_options(query: Mapping[str, str], kind: str, is_apply: bool = False) -> WriteOptions:
    """`kind`: CreateOptions, UpdateOptions or PatchOptions. Raises StatusError 400 or 422."""
    errors: list[FieldError] = []
    dry = _dry_run(query.get("dryRun"), errors)
    manager = query.get("fieldManager", "")
    if is_apply and not manager:
        errors.append(required("fieldManager", "is required for apply patch"))
    if len(manager) > MAX_MANAGER:
        errors.append(too_long("fieldManager", f"may not be more than {MAX_MANAGER} bytes"))
    elif not manager.isprintable():
        errors.append(invalid("fieldManager", manager, "should only contain printable characters"))
    force = _flag(query, "force") if "force" in query else None
    if kind == "PatchOptions" and force is not None and not is_apply:
        errors.append(forbidden("force", "may not be specified for non-apply patch"))
    validation = query.get("fieldValidation", "")
    if validation and validation not in VALIDATIONS:
        errors.append(not_supported("fieldValidation", validation, ("", *VALIDATIONS)))
    if errors:
        raise invalid_status("meta.k8s.io", kind, "", errors)
    return WriteOptions(dry, manager, validation or "Warn", force)


def delete_options(query: Mapping[str, str], body: Object | None) -> DeleteOptions:
    """The body counts when there is one, else the query."""
    errors: list[FieldError] = []
    if body is not None:
        dry: Any = body.get("dryRun") or []
        is_dry_run = _dry_run(dry[0] if dry else None, errors)
        grace, propagation = body.get("gracePeriodSeconds"), body.get("propagationPolicy") or ""
        orphan = body.get("orphanDependents")
        preconditions: Object = body.get("preconditions") or {}
    else:
        is_dry_run = _dry_run(query.get("dryRun"), errors)
        grace = _integer(query, "gracePeriodSeconds") if "gracePeriodSeconds" in query else None
        propagation, orphan, preconditions = query.get("propagationPolicy", ""), None, {}
        if "orphanDependents" in query:
            orphan = _flag(query, "orphanDependents")
    if propagation and propagation not in PROPAGATIONS:
        errors.append(not_supported("propagationPolicy", propagation, (*PROPAGATIONS, "nil")))
    if propagation and orphan is not None:
        errors.append(invalid("propagationPolicy", propagation, "orphanDependents and deletionPropagation cannot be both set"))
    if errors:
        raise invalid_status("meta.k8s.io", "DeleteOptions", "", errors)
    if orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    return DeleteOptions(is_dry_run, grace, propagation, preconditions.get("uid"), preconditions.get("resourceVersion"))


def _dry_run(value: str | None, errors: list[FieldError]) -> bool:
    if value is None or value == "":
        return False
    if value != "All":
        errors.append(not_supported("dryRun", value, ("All",)))
    return True


def _combined(options: ListOptions) -> list[FieldError]:
    """Combinations of resourceVersion, match, continue and initial events that are refused."""
    errors: list[FieldError] = []
    match = options.match
    if options.is_watch:
        if match and options.initial_events is None:
            errors.append(forbidden(MATCH, f"{MATCH} is forbidden for watch unless sendInitialEvents is provided"))
        if options.initial_events is not None and match != "NotOlderThan":
            errors.append(forbidden(MATCH, f"sendInitialEvents requires setting {MATCH} to NotOlderThan"))
        if match not in ("", "NotOlderThan"):
            errors.append(not_supported(MATCH, match, ("NotOlderThan",)))
        if match and options.continue_token:
            errors.append(forbidden(MATCH, f"{MATCH} is forbidden when continue is provided"))
        return errors
    if options.initial_events is not None:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if options.match:
        if options.match not in ("Exact", "NotOlderThan"):
            errors.append(not_supported(MATCH, options.match, ("Exact", "NotOlderThan", "")))
        elif options.match == "Exact" and options.resource_version == "0":
            errors.append(forbidden(MATCH, f'{MATCH} "exact" is forbidden for resourceVersion "0"'))
        if not options.resource_version:
            errors.append(forbidden(MATCH, f"{MATCH} is forbidden unless resourceVersion is provided"))
        if options.continue_token:
            errors.append(forbidden(MATCH, f"{MATCH} is forbidden when continue is provided"))
    return errors


def _integer(query: Mapping[str, str], name: str) -> int:
    text = query.get(name)
    if not text:
        return 0
    try:
        if not text.isascii() or not text.lstrip("+-").isdigit():
            raise ValueError(text)
        return int(text)
    except ValueError:
        message = f'strconv.ParseInt: parsing "{text}": invalid syntax'
        raise bad_request(message) from None


def _flag(query: Mapping[str, str], name: str) -> bool:
    text = query.get(name)
    if text is None or text in FALSE:
        return False
    if text in TRUE:
        return True
    # Anything else is true for the server's own decoder, which knows only "0" and "false" as no.
    return True


def retry_later(message: str, seconds: int) -> StatusError:
    """A request that cannot be served yet."""
    return StatusError(504, "Timeout", message, {}, seconds)
