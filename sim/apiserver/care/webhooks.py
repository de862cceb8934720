"""Admission webhooks: asked as kube-apiserver asks them. Conversion webhooks are in conversion.py."""

import asyncio
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

import msgspec

from sim.apiserver.care.calls import Caller, CallFailed, Http, url_of
from sim.apiserver.care.conversion import Conversions
from sim.apiserver.care.matching import EXEMPT, Hook, hook_of, is_wanted, version_for
from sim.apiserver.care.mutations import mutated
from sim.apiserver.care.reviews import BadAnswer, Response, denial, internal, kind_of, request_of, response_in, review_of
from sim.apiserver.metadata import new_uid
from sim.apiserver.objects import Object
from sim.apiserver.resources import Lookup, Resource, Version
from sim.apiserver.scaling import scale_of
from sim.apiserver.status import bad_request
from sim.apiserver.versions import Converter
from sim.apiserver.writes import Attributes

__all__ = ("Webhooks",)

GROUP = "admissionregistration.k8s.io"
MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
DRY_RUNS = ("None", "NoneOnDryRun")
ROUNDS = 2
SYSTEM_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")


class Question(NamedTuple):
    """A webhook that a request goes to, with the objects in its version."""

    hook: Hook
    version: Version
    obj: Object | None
    old: Object | None


class Webhooks:
    """Calls the webhooks of stored configurations and definitions. `caller`: how; HTTPS without services by default.

    `rng` makes uids of conversion reviews; those of admission come from the request's context.
    """

    def __init__(self, lookup: Lookup, caller: Caller | None = None, rng: Random | None = None) -> None:
        self._lookup = lookup
        self._caller: Caller = caller or Http()
        self._conversions = Conversions(self._caller, rng or Random(0))  # noqa: S311 - uids of reviews
        self._converter = Converter(self)
        self._ready: dict[str, tuple[Object, list[Hook]]] = {}

    @property
    def is_active(self) -> bool:
        """Whether there is any configuration: with none this costs two looks into empty tables."""
        return bool(self._lookup.list(GROUP, MUTATING) or self._lookup.list(GROUP, VALIDATING))

    async def convert(self, resource: Resource, objects: Sequence[Object], api_version: str) -> Sequence[Object]:
        """Objects in another version, by the webhook of their definition."""
        return await self._conversions.convert(resource, objects, api_version)

    async def mutate(self, attributes: Attributes, warnings: list[str]) -> Object:
        """One webhook after the other; those that want it again after a later one changed the object."""
        obj = _without_system_fields(attributes)
        earlier: set[int] = set()
        again: set[int] = set()
        for turn in range(ROUNDS if _is_reviewed(attributes) else 0):
            for index, hook in enumerate(self._hooks(MUTATING)):
                if turn and index not in again:
                    continue
                question = await self._question(hook, attributes, obj)
                if question is None:
                    continue
                response = await self._ask(question, attributes, warnings, is_mutating=True)
                changed = None
                if response is not None:
                    changed = await mutated(hook.name, response, obj, question.obj, attributes, self._converter)
                if changed is not None:
                    obj = changed
                    again |= earlier
                    earlier.clear()
                if hook.is_reinvoked:
                    earlier.add(index)
            if not again:
                break
        if obj is None:
            return {}
        if attributes.resource.is_namespaced and obj["metadata"].get("namespace", "") != attributes.key.namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        return obj

    async def validate(self, attributes: Attributes, warnings: list[str]) -> None:
        """All webhooks at once; the first denial in their order decides."""
        if not _is_reviewed(attributes):
            return
        obj = _with_revision(attributes)
        found = [await self._question(hook, attributes, obj) for hook in self._hooks(VALIDATING)]
        questions = [question for question in found if question is not None]
        if len(questions) == 1:
            await self._ask(questions[0], attributes, warnings, is_mutating=False)
            return
        said: list[list[str]] = [[] for _ in questions]
        asked = (self._ask(q, attributes, texts, is_mutating=False) for q, texts in zip(questions, said, strict=True))
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for texts in said:
            warnings += texts
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    def _hooks(self, plural: str) -> Iterator[Hook]:
        """In the order of their configurations' names. A stored configuration never changes, so one look at each is enough."""
        for config in sorted(self._lookup.list(GROUP, plural), key=_name):
            key = f"{plural}/{_name(config)}"
            seen, hooks = self._ready.get(key, (None, ()))
            if seen is not config:
                hooks = [hook_of(webhook) for webhook in config.get("webhooks") or ()]
                self._ready[key] = config, hooks
            yield from hooks

    async def _question(self, hook: Hook, attributes: Attributes, obj: Object | None) -> Question | None:
        """What the hook is to be asked about the request; None: nothing."""
        version = version_for(hook, attributes, obj, self._lookup)
        if version is None:
            return None
        shown = await self._shown(attributes, version, obj)
        before = await self._shown(attributes, version, attributes.old)
        if not is_wanted(hook, attributes, version, shown, before):
            return None
        return Question(hook, version, shown, before)

    async def _shown(self, attributes: Attributes, version: Version, obj: Object | None) -> Object | None:
        """An object as a webhook sees it."""
        resource, subresource = attributes.resource, attributes.subresource
        if obj is None:
            return None
        if (kind := kind_of(resource, version, subresource)).kind != resource.kind and subresource != "scale":
            return {"kind": kind.kind, "apiVersion": kind.api_version, **obj}  # posted to a subresource
        obj = await self._converter.convert(resource, obj, resource.api_version(version.name))
        if subresource == "scale" and version.scale is not None:
            return scale_of(obj, version.scale, resource)
        return obj

    async def _ask(self, question: Question, attributes: Attributes, warnings: list[str], *, is_mutating: bool) -> Response | None:
        """The answer of a webhook that allows the request; None where its failure is ignored. Raises StatusError."""
        hook = question.hook
        if attributes.ctx.is_dry_run and hook.side_effects not in DRY_RUNS:
            raise bad_request(f'admission webhook "{hook.name}" does not support dry run')
        uid = new_uid(attributes.ctx.rng)
        review = review_of(request_of(attributes, question.version), uid, question.obj, question.old)
        try:
            body = await self._caller.post(hook.client_config, url_of(hook.client_config), msgspec.json.encode(review), hook.timeout_s)
            response = response_in(body, uid, is_mutating=is_mutating)
        except (CallFailed, BadAnswer) as error:
            if hook.is_ignorable:
                return None
            text = str(error) if isinstance(error, BadAnswer) else f"failed to call webhook: {error}"
            raise internal(f'failed calling webhook "{hook.name}": {text}') from None
        warnings.extend(response.warnings)
        if not response.is_allowed:
            raise denial(hook.name, response.status)
        return response


def _is_reviewed(attributes: Attributes) -> bool:
    return attributes.resource.group != GROUP or attributes.resource.plural not in EXEMPT


def _without_system_fields(attributes: Attributes) -> Object | None:
    """What a client says of fields that are the server's is dropped before mutating webhooks see a new object."""
    obj = attributes.obj
    if obj is None or attributes.operation != "CREATE" or attributes.subresource:
        return obj
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k not in SYSTEM_FIELDS}}


def _with_revision(attributes: Attributes) -> Object | None:
    """Validating webhooks see an update with the revision that it replaces."""
    obj, old = attributes.obj, attributes.old
    if obj is None or old is None or obj["metadata"].get("resourceVersion"):
        return obj
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": old["metadata"]["resourceVersion"]}}


def _name(config: Object) -> str:
    return config["metadata"]["name"]
