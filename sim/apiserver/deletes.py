"""DELETE: at once, after a grace period, or when the last finalizer has gone."""

from datetime import timedelta

from sim.apiserver import metadata as meta
from sim.apiserver.objects import Object, copied
from sim.apiserver.options import DeleteOptions
from sim.apiserver.resources import Resource
from sim.apiserver.status import conflict, not_found
from sim.apiserver.storage import Entry, Storage, buried
from sim.apiserver.writes import Admission, Attributes, Work, Writer

__all__ = ("Deleter",)

NAMESPACES = ("", "namespaces")
ORPHAN, FOREGROUND = "orphan", "foregroundDeletion"


class Deleter:
    """Carries out deletions."""

    def __init__(self, storage: Storage, writer: Writer, admission: Admission) -> None:
        self._storage = storage
        self._writer = writer
        self._admission = admission

    @staticmethod
    def check(work: Work, old: Entry, options: DeleteOptions) -> None:
        """Preconditions of a deletion, before anything else is done. Raises StatusError 409."""
        _check_preconditions(work.resource, old, options)

    async def delete(self, work: Work, options: DeleteOptions) -> tuple[Entry, bool]:
        """The last state of the object, and whether it is gone. Raises StatusError 403, 404 or 409."""
        work.operation = "DELETE"
        table = self._storage.table(work.resource)
        old = table.entries.get(work.key)
        if old is None:
            raise not_found(work.resource.group, work.resource.plural, work.key.name)
        _check_preconditions(work.resource, old, options)
        work.resource.strategy.validate_delete(work.ctx, old.obj)
        if self._admission.is_active and not _is_pending(work, old, options):
            attributes = Attributes("DELETE", work.resource, work.version, work.key, "", None, old.obj, _as_json(options), work.ctx)
            await self._admission.mutate(attributes, work.warnings)
            await self._admission.validate(attributes, work.warnings)
            old = table.entries.get(work.key)
            if old is None:
                raise not_found(work.resource.group, work.resource.plural, work.key.name)
            _check_preconditions(work.resource, old, options)
        return self._carry_out(work, old, options)

    def _carry_out(self, work: Work, old: Entry, options: DeleteOptions) -> tuple[Entry, bool]:
        strategy, metadata = work.resource.strategy, old.obj["metadata"]
        if strategy.orphan_warning and not options.propagation:
            work.warnings.append(strategy.orphan_warning)
        finalizers = _finalizers(list(metadata.get("finalizers", ())), options.propagation, strategy.orphans)
        is_graceful = strategy.is_graceful()
        grace_s = strategy.grace_s(work.ctx, old.obj, options.grace_s) if is_graceful else 0
        is_leaving = bool(metadata.get("deletionTimestamp"))
        if is_leaving:
            # Who is leaving already can only be hurried.
            known = metadata.get("deletionGracePeriodSeconds", 0)
            grace_s = min(known, grace_s) if options.grace_s is not None else known
        is_last = not finalizers and grace_s == 0 and not strategy.is_held(old.obj)
        if is_last and not is_graceful:
            return self._gone(work, old), True
        obj = copied(old.obj)
        changed = obj["metadata"]
        if finalizers != list(metadata.get("finalizers", ())):
            changed["finalizers"] = finalizers
            if not finalizers:
                del changed["finalizers"]
        if not is_leaving or grace_s < changed.get("deletionGracePeriodSeconds", 0):
            changed["deletionTimestamp"] = meta.timestamp(work.ctx.now + timedelta(seconds=grace_s))
            changed["deletionGracePeriodSeconds"] = grace_s
        if not is_leaving:
            if changed.get("generation", 0) > 0:
                changed["generation"] += 1
            strategy.prepare_delete(work.ctx, obj)
        entry = self._writer.keep(work, old, obj, old.ledger)
        # Kinds with grace say that it is over before they go, as the real server does.
        return (self._gone(work, entry), True) if is_last else (entry, False)

    def _gone(self, work: Work, entry: Entry) -> Entry:
        """Removes an object; its last state, at the revision of that."""
        if work.ctx.is_dry_run:
            return entry
        self._storage.commit(work.resource, work.key, None, entry.ledger, work.author)
        return buried(entry, self._storage.revision)


def _is_pending(work: Work, old: Entry, options: DeleteOptions) -> bool:
    """Whether the object leaves already, and no sooner for this request: webhooks are not asked again."""
    strategy, metadata = work.resource.strategy, old.obj["metadata"]
    if not strategy.is_graceful() or not metadata.get("deletionTimestamp"):
        return False
    known = metadata.get("deletionGracePeriodSeconds", 0)
    return options.grace_s is None or strategy.grace_s(work.ctx, old.obj, options.grace_s) >= known


def _finalizers(names: list[str], propagation: str, orphans: bool) -> list[str]:
    """With what the propagation policy adds and takes away. Without one the object's own finalizers decide, then its kind."""
    if not propagation:
        return [*names, ORPHAN] if orphans and ORPHAN not in names and FOREGROUND not in names else names
    out = [name for name in names if name not in (ORPHAN, FOREGROUND)]
    if propagation == "Orphan":
        out.append(ORPHAN)
    if propagation == "Foreground":
        out.append(FOREGROUND)
    return out


def _check_preconditions(resource: Resource, old: Entry, options: DeleteOptions) -> None:
    metadata, wanted = old.obj["metadata"], options.uid
    if resource.place == NAMESPACES:
        # They have a check of their own, with words of its own.
        known = {"UID": metadata["uid"], "ResourceVersion": str(old.revision)}
        for what, asked in (("UID", options.uid), ("ResourceVersion", options.resource_version)):
            if asked is not None and asked != known[what]:
                why = f"Precondition failed: {what} in precondition: {asked}, {what} in object meta: {known[what]}"
                raise conflict("", "namespaces", metadata["name"], why)
        return
    if wanted is not None and wanted != metadata["uid"]:
        why = f"the UID in the precondition ({wanted}) does not match the UID in record ({metadata['uid']}). "
        why += "The object might have been deleted and then recreated"
        raise conflict(resource.group, resource.kind, metadata["name"], why)
    wanted = options.resource_version
    if wanted is not None and wanted != str(old.revision):
        why = f"the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({old.revision}). "
        raise conflict(resource.group, resource.kind, metadata["name"], why + "The object might have been modified")


def _as_json(options: DeleteOptions) -> Object:
    out: Object = {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"}
    if options.grace_s is not None:
        out["gracePeriodSeconds"] = options.grace_s
    if options.propagation:
        out["propagationPolicy"] = options.propagation
    if options.is_dry_run:
        out["dryRun"] = ["All"]
    return out
