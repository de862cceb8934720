"""From a routed request to what it does: one method per verb."""

from collections.abc import Callable
from dataclasses import replace

from sim.apiserver.bodies import decoded, decoded_action, decoded_options, media_type
from sim.apiserver.deletes import Deleter
from sim.apiserver.fields.lazy import Ledger
from sim.apiserver.fitting import APPLY
from sim.apiserver.objects import Object, as_map, copied, dig
from sim.apiserver.options import WriteOptions, delete_options, list_options, write_options
from sim.apiserver.owning import manager_of
from sim.apiserver.patching import Patcher, check_identity
from sim.apiserver.reading import Form, Reader, answer, form_of
from sim.apiserver.requests import Answer, Request, Stream
from sim.apiserver.resources import Context, Effect, ObjectKey, Resource, Subresource, Version
from sim.apiserver.routes import Target
from sim.apiserver.scaling import Scaler, scale_of
from sim.apiserver.status import StatusError, bad_request, forbidden, method_not_allowed, not_found, qualified
from sim.apiserver.storage import Author, Entry, Storage
from sim.apiserver.watching import Watches
from sim.apiserver.writes import Result, Work, Writer

__all__ = ("Verbs",)

ContextOf = Callable[[Request, bool], Context]
KINDS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}
METHODS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Verbs:
    """Runs requests for resources."""

    def __init__(
        self,
        storage: Storage,
        reader: Reader,
        writer: Writer,
        patcher: Patcher,
        deleter: Deleter,
        watches: Watches,
        context_of: ContextOf,
    ) -> None:
        self._storage = storage
        self._reader = reader
        self._writer = writer
        self._patcher = patcher
        self._scaler = Scaler(writer, patcher)
        self._deleter = deleter
        self._watches = watches
        self._context_of = context_of

    async def run(self, request: Request, target: Target, resource: Resource, version: Version) -> Answer | Stream:
        """Raises StatusError."""
        self._check_path(request, target, resource, version)
        match request.method:
            case "GET" | "HEAD" if target.name and not target.is_watch:
                return await self._get(request, target, resource, version)
            case "GET" | "HEAD":
                return await self._list(request, target, resource, version)
            case "POST":
                return await self._post(request, target, resource, version)
            case "PUT":
                return await self._put(request, target, resource, version)
            case "PATCH":
                return await self._patch(request, target, resource, version)
            case _:
                return await self._delete(request, target, resource, version)

    def _check_path(self, request: Request, target: Target, resource: Resource, version: Version) -> None:
        """Raises StatusError where there is nothing or not this verb. Custom resources have a handler of their own, with its own words."""
        method = request.method
        sub = None if resource.is_custom else resource.subresources.get(target.subresource)
        if sub is not None:
            self._check_subresource(method, target, resource, sub)
        elif target.subresource and not _has(resource, version, target.subresource):
            raise not_found(resource.group, resource.plural, target.name) if resource.is_custom else missing_subresource()
        if resource.is_custom:
            if method not in METHODS:
                raise unsupported(resource, "")
            if method in ("PUT", "PATCH") and not target.name:
                raise bad_request("name must be provided")
            if method == "DELETE" and target.subresource:
                raise unsupported(resource, "delete")
            return
        if target.name and "get" not in resource.verbs:
            raise missing_subresource()
        is_known = method in METHODS and method != "HEAD"
        if not is_known or (method in ("PUT", "PATCH") and not target.name) or (method == "DELETE" and target.subresource):
            raise method_not_allowed()

    def _check_subresource(self, method: str, target: Target, resource: Resource, sub: Subresource) -> None:
        """Of a built-in kind; those that need a kubelet only know whether there is an object. Raises StatusError 404 or 405."""
        if METHODS.get(method) not in sub.verbs or method == "HEAD":
            raise method_not_allowed()
        if target.subresource not in resource.actions and "update" not in sub.verbs:
            key = ObjectKey(target.namespace, target.name)
            is_there = key in self._storage.table(resource).entries
            raise missing_subresource() if is_there else not_found(resource.group, resource.plural, target.name)

    async def _get(self, request: Request, target: Target, resource: Resource, version: Version) -> Answer:
        form = form_of(request, resource)
        key = ObjectKey(target.namespace, target.name)
        if target.subresource == "scale":
            assert version.scale is not None  # noqa: S101 - _has said so
            obj = await self._reader.get(resource, version, key, replace(form, lean=True))
            return answer(scale_of(obj, version.scale, resource), form.accepted)
        obj = await self._reader.get(resource, version, key, form, request.query.get("resourceVersion", ""))
        return answer(obj, form.accepted)

    async def _list(self, request: Request, target: Target, resource: Resource, version: Version) -> Answer | Stream:
        if "list" not in resource.verbs:
            raise method_not_allowed()
        query = dict(request.query)
        if target.is_watch:
            query["watch"] = "true"
        if target.name:
            query["fieldSelector"] = f"metadata.name={target.name}"
        options = list_options(query)
        form = form_of(request, resource, is_watch=options.is_watch, is_list=True)
        if options.is_watch:
            return Stream(self._watches.open(resource, version, target.namespace, options, form), form.accepted.content_type)
        return answer(await self._reader.list(resource, version, target.namespace, options, form), form.accepted)

    def _work(self, request: Request, target: Target, resource: Resource, version: Version) -> Work:
        is_apply = request.method == "PATCH" and media_type(request.content_type) == APPLY
        options = write_options(request.query, KINDS[request.method], is_apply)
        manager = manager_of(options, request)
        author = Author(request.user.name, request.user_agent, VERBS[request.method], target.subresource, manager)
        context = self._context_of(request, options.is_dry_run)
        return Work(resource, version, ObjectKey(target.namespace, target.name), target.subresource, options, context, author)

    async def _post(self, request: Request, target: Target, resource: Resource, version: Version) -> Answer:
        if target.subresource in resource.actions:
            return await self._act(request, target, resource, version)
        if target.subresource or (target.name and not resource.is_custom):
            raise method_not_allowed()
        # The handler of custom resources does not look at a name in the path.
        target = replace(target, name="")
        work = self._work(request, target, resource, version)
        form = form_of(request, resource)
        if resource.is_namespaced and not target.namespace:
            raise method_not_allowed()
        if resource.delegate is not None:
            return await self._delegated(request, target, resource)
        obj, work.warnings = decoded(request, resource, version, work.options.validation)
        _check_namespace(obj, target.namespace)
        if resource.review is not None:
            return answer(resource.review(work.ctx, obj), form.accepted, 201)
        self._check_namespace_is_open(work, obj)
        result = await self._writer.create(work, obj)
        return await self._written(work, result, form)

    async def _delegated(self, request: Request, target: Target, resource: Resource) -> Answer:
        """A POST to the collection that means a subresource of another resource."""
        assert resource.delegate is not None  # noqa: S101 - asked before
        plural, subresource = resource.delegate
        owner = next(t.resource for t in self._storage.tables() if t.resource.place == (resource.group, plural))
        name = dig(decoded_action(request, owner, subresource), "metadata", "name")
        if not name:
            raise bad_request("Name parameter required.")
        named = replace(target, plural=plural, name=name, subresource=subresource)
        return await self._act(request, named, owner, owner.versions[0])

    async def _act(self, request: Request, target: Target, resource: Resource, version: Version) -> Answer:
        work = self._work(request, target, resource, version)
        body = decoded_action(request, resource, target.subresource)
        _check_namespace(body, target.namespace)
        table = self._storage.table(resource)
        if work.key not in table.entries:
            raise not_found(resource.group, resource.plural, target.name)
        body = await self._writer.admit(work, body)
        old = table.entries.get(work.key)
        if old is None:
            raise not_found(resource.group, resource.plural, target.name)
        effect = resource.actions[target.subresource](work.ctx, old.obj, body)
        options = delete_options({}, effect.delete_options) if effect.delete_options is not None else None
        if options is not None:
            self._deleter.check(work, old, options)
            if options.is_dry_run:
                work.ctx = replace(work.ctx, is_dry_run=True)
        self._also(work, effect)
        if effect.changed is not None:
            self._writer.settle(work, old, effect.changed, old.ledger)
        if options is not None:
            await self._deleter.delete(work, replace(options, resource_version=None))
        return answer(effect.answer, form_of(request, resource).accepted, effect.status)

    def _also(self, work: Work, effect: Effect) -> None:
        """Other objects that an action changes."""
        for group, plural, obj in effect.others:
            table = self._storage.find(group, plural)
            key = ObjectKey(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
            old = table.entries.get(key) if table is not None else None
            if table is not None and old is not None:
                also = replace(work, resource=table.resource, version=table.resource.versions[0], key=key)
                self._writer.settle(also, old, obj, old.ledger)

    async def _put(self, request: Request, target: Target, resource: Resource, version: Version) -> Answer:
        work = self._work(request, target, resource, version)
        form = form_of(request, resource)
        if target.subresource == "scale":
            return await self._scale(request, work, form)
        obj, work.warnings = decoded(request, resource, version, work.options.validation)
        _check_namespace(obj, target.namespace)
        check_identity(work, obj)
        if work.key not in self._storage.table(resource).entries and resource.strategy.may_create_on_update and not target.subresource:
            self._check_namespace_is_open(work, obj)
            return await self._written(work, await self._writer.create(work, obj), form)
        obj = await self._patcher.converted(work, obj)

        async def change(old: Entry) -> tuple[Object, Ledger | None]:
            return copied(obj) if work.options.is_dry_run else obj, None

        return await self._written(work, await self._writer.update(work, change), form)

    async def _patch(self, request: Request, target: Target, resource: Resource, version: Version) -> Answer:
        work = self._work(request, target, resource, version)
        form = form_of(request, resource)
        if target.subresource == "scale":
            return await self._scale(request, work, form)
        if media_type(request.content_type) == APPLY and work.key not in self._storage.table(resource).entries:
            self._check_namespace_is_open(work, {"metadata": {"name": target.name}})
        return await self._written(work, await self._patcher.patch(work, request), form)

    async def _scale(self, request: Request, work: Work, form: Form) -> Answer:
        """PUT or PATCH of a Scale."""
        scale = work.version.scale
        assert scale is not None  # noqa: S101 - _has said so
        result = await self._scaler.write(work, request)
        obj = await self._reader.whole(work.resource, work.version, result.entry, lean=True)
        return answer(scale_of(obj, scale, work.resource), form.accepted, 200, work.warnings)

    async def _delete(self, request: Request, target: Target, resource: Resource, version: Version) -> Answer:
        options = delete_options(request.query, decoded_options(request))
        form = form_of(request, resource)
        author = Author(request.user.name, request.user_agent, "delete", "", manager_of(WriteOptions(), request))
        context = self._context_of(request, options.is_dry_run)
        key = ObjectKey(target.namespace, target.name)
        work = Work(resource, version, key, "", WriteOptions(options.is_dry_run), context, author)
        if not target.name:
            return await self._delete_collection(request, target, work, form)
        entry, is_gone = await self._deleter.delete(work, options)
        obj = await self._reader.shown(resource, version, entry, form)
        if is_gone and not resource.strategy.returns_deleted:
            return answer(_success(resource, entry), form.accepted, 200, work.warnings)
        return answer(obj, form.accepted, 200, work.warnings)

    async def _delete_collection(self, request: Request, target: Target, work: Work, form: Form) -> Answer:
        if "deletecollection" not in work.resource.verbs or (work.resource.is_namespaced and not target.namespace):
            raise method_not_allowed()
        options = delete_options(request.query, decoded_options(request))
        plain = replace(form, lean=False)
        listed = await self._reader.list(work.resource, work.version, target.namespace, list_options(request.query), plain)
        items: list[Object] = listed.get("items") or []
        for item in items:
            key = ObjectKey(target.namespace, item["metadata"]["name"])
            await self._deleter.delete(replace(work, key=key), options)
        return answer(listed, form.accepted, 200, list(dict.fromkeys(work.warnings)))

    async def _written(self, work: Work, result: Result, form: Form) -> Answer:
        obj = await self._reader.shown(work.resource, work.version, result.entry, form)
        return answer(obj, form.accepted, 201 if result.is_created else 200, work.warnings)

    def _check_namespace_is_open(self, work: Work, obj: Object) -> None:
        """New objects need a namespace that is there and stays."""
        if not work.resource.is_namespaced:
            return
        name = work.key.namespace
        namespace = work.ctx.lookup.get("", "namespaces", "", name)
        if namespace is None:
            raise not_found("", "namespaces", name)
        if namespace["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {name} because it is being terminated"
            metadata: Object = obj["metadata"]
            new = metadata.get("name") or metadata.get("generateName") or ""
            error = forbidden(work.resource.group, work.resource.plural, new, why)
            message = f"namespace {name} is being terminated"
            error.details["causes"] = [{"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}]
            raise error


def _has(resource: Resource, version: Version, subresource: str) -> bool:
    if subresource == "status":
        return version.has_status
    if subresource == "scale":
        return version.scale is not None
    return subresource in resource.actions or "update" in getattr(resource.subresources.get(subresource), "verbs", ())


def missing_subresource() -> StatusError:
    """A subresource that does not exist."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", shows_details=True)


def unsupported(resource: Resource, verb: str) -> StatusError:
    """A verb that custom resources do not have."""
    details = {"group": resource.group, "kind": resource.plural}
    message = f'{verb} is not supported on resources of kind "{qualified(resource.plural, resource.group)}"'
    return StatusError(405, "MethodNotAllowed", message, details)


def _check_namespace(obj: Object, namespace: str) -> None:
    fields = as_map(obj.get("metadata"))
    if fields is None:
        obj["metadata"] = {"namespace": namespace} if namespace else {}
        return
    if namespace and fields.get("namespace", namespace) not in ("", None, namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if namespace:
        obj["metadata"] = {**fields, "namespace": namespace}


def _success(resource: Resource, entry: Entry) -> Object:
    details: Object = {"name": entry.obj["metadata"]["name"], "kind": resource.plural, "uid": entry.obj["metadata"]["uid"]}
    if resource.group:
        details["group"] = resource.group
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
