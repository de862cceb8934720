"""Query parameters and option objects of requests, checked as kube-apiserver does."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from api.fielderrors import FieldError, forbidden, invalid, not_supported, required, too_long
from sim.apiserver.objects import Object
from sim.apiserver.status import StatusError, bad_request
from sim.apiserver.status import invalid as invalid_status

__all__ = ("DeleteOptions", "ListOptions", "WriteOptions", "delete_options", "list_options", "write_options")

FALSE = ("0", "false")
"""Every other value of a boolean parameter means true, also an empty one as in `?watch`."""
INT64 = 2**63
INTEGER = re.compile(r"[+-]?[0-9]+")
MAX_DIGITS = 32
VALIDATIONS = ("Ignore", "Strict", "Warn")
PROPAGATIONS = ("Foreground", "Background", "Orphan")
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
    dry = _dry_run([query["dryRun"]] if "dryRun" in query else (), errors)
    manager = query.get("fieldManager", "")
    if is_apply and not manager:
        errors.append(required("fieldManager", "is required for apply patch"))
    errors += _manager_errors(manager)
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
        is_dry_run = _dry_run(body.get("dryRun") or (), errors)
        grace, propagation = body.get("gracePeriodSeconds"), body.get("propagationPolicy") or ""
        orphan = body.get("orphanDependents")
        preconditions: Object = body.get("preconditions") or {}
    else:
        is_dry_run = _dry_run([query["dryRun"]] if "dryRun" in query else (), errors)
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


def _dry_run(values: Sequence[str], errors: list[FieldError]) -> bool:
    if any(value != "All" for value in values):
        errors.append(not_supported("dryRun", values, ("All",)))
    return bool(values)


def _manager_errors(manager: str) -> Iterator[FieldError]:
    if len(manager.encode(errors="replace")) > MAX_MANAGER:
        yield too_long("fieldManager", f"may not be more than {MAX_MANAGER} bytes")
    if manager.isprintable():
        return
    position = 0
    for char in manager:
        if not char.isprintable():
            yield invalid("fieldManager", manager, f"invalid character U+{ord(char):04X} (at position {position})")
        position += len(char.encode(errors="replace"))


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
    if not match:
        return errors
    if not options.resource_version:
        errors.append(forbidden(MATCH, f"{MATCH} is forbidden unless resourceVersion is provided"))
    if options.continue_token:
        errors.append(forbidden(MATCH, f"{MATCH} is forbidden when continue is provided"))
    if match not in ("Exact", "NotOlderThan"):
        errors.append(not_supported(MATCH, match, ("Exact", "NotOlderThan", "")))
    elif match == "Exact" and options.resource_version == "0":
        errors.append(forbidden(MATCH, f'{MATCH} "exact" is forbidden for resourceVersion "0"'))
    return errors


def _integer(query: Mapping[str, str], name: str) -> int:
    """0 where there is none. Raises StatusError 400 in the words of Go."""
    text = query.get(name)
    if text is None:
        return 0
    if INTEGER.fullmatch(text) is None:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    # More digits than any such number has need not be read.
    value = int(text) if len(text) <= MAX_DIGITS else INT64
    if not -INT64 <= value < INT64:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return value


def _flag(query: Mapping[str, str], name: str) -> bool:
    text = query.get(name)
    return text is not None and text.lower() not in FALSE


def retry_later(message: str, seconds: int) -> StatusError:
    """A request that cannot be served yet."""
    return StatusError(504, "Timeout", message, {}, seconds)
