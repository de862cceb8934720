"""RBAC objects, which are stored and not enforced, and reviews, which allow everything."""

from collections.abc import Callable, Mapping
from typing import Final

from api.fielderrors import FieldError, invalid, not_supported, required
from sim.apiserver.builtin.base import Builtin
from sim.apiserver.builtin.names import bad_subdomain, path_segment
from sim.apiserver.builtin.parts import items, part
from sim.apiserver.metadata import timestamp
from sim.apiserver.objects import Object
from sim.apiserver.resources import Context
from sim.apiserver.status import bad_request
from sim.apiserver.status import invalid as invalid_status

__all__ = ("REVIEWS", "BindingStrategy", "RoleStrategy")

GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECTS: Final = ("ServiceAccount", "User", "Group")
_AUTHORIZATION: Final = "authorization.k8s.io"
_ALL: Final[Object] = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


class RoleStrategy(Builtin):
    """Roles and cluster roles."""

    name_check = staticmethod(path_segment)

    def __init__(self, *, is_namespaced: bool) -> None:
        super().__init__(may_create_on_update=True)
        self._is_namespaced = is_namespaced

    def fill(self, obj: Object) -> None:
        obj["rules"] = obj.get("rules") or None

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        return [e for i, rule in enumerate(obj["rules"] or ()) for e in self._rule(f"rules[{i}]", rule)]

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        return self.validate_create(ctx, obj)

    def _rule(self, path: str, rule: Object) -> list[FieldError]:
        out: list[FieldError] = []
        if not rule.get("verbs"):
            out.append(required(f"{path}.verbs", "verbs must contain at least one value"))
        if urls := rule.get("nonResourceURLs"):
            if self._is_namespaced:
                out.append(invalid(f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs"))
            elif rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                text = "rules cannot apply to both regular resources and non-resource URLs"
                out.append(invalid(f"{path}.nonResourceURLs", urls, text))
            return out
        if not rule.get("apiGroups"):
            out.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            out.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
        return out


class BindingStrategy(Builtin):
    """Role bindings and cluster role bindings."""

    name_check = staticmethod(path_segment)

    def __init__(self, *, is_namespaced: bool) -> None:
        super().__init__(may_create_on_update=True)
        self._is_namespaced = is_namespaced
        self._kinds = ("Role", "ClusterRole") if is_namespaced else ("ClusterRole",)

    def fill(self, obj: Object) -> None:
        role = part(obj, "roleRef")
        obj["roleRef"] = {"kind": "", "name": "", **role, "apiGroup": role.get("apiGroup") or GROUP}
        if subjects := items(obj, "subjects"):
            obj["subjects"] = [{**s, "apiGroup": GROUP} if _is_bare(s) else s for s in subjects]

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        role = obj["roleRef"]
        out: list[FieldError] = []
        if role["apiGroup"] != GROUP:
            out.append(not_supported("roleRef.apiGroup", role["apiGroup"], (GROUP,)))
        if role["kind"] not in self._kinds:
            out.append(not_supported("roleRef.kind", role["kind"], self._kinds))
        if not role["name"]:
            out.append(required("roleRef.name"))
        else:
            out += [invalid("roleRef.name", role["name"], text) for text in path_segment(role["name"])]
        for i, subject in enumerate(items(obj, "subjects")):
            out += self._subject(f"subjects[{i}]", subject)
        return out

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        role = obj["roleRef"]
        out = self.validate_create(ctx, obj)
        if role != old["roleRef"]:
            shown = {"APIGroup": role["apiGroup"], "Kind": role["kind"], "Name": role["name"]}
            out.append(invalid("roleRef", shown, "cannot change roleRef"))
        return out

    def _subject(self, path: str, subject: Object) -> list[FieldError]:
        kind, name, group = subject.get("kind") or "", subject.get("name") or "", subject.get("apiGroup") or ""
        out: list[FieldError] = [] if name else [required(f"{path}.name")]
        if kind not in _SUBJECTS:
            return [*out, not_supported(f"{path}.kind", kind, _SUBJECTS)]
        wanted = "" if kind == "ServiceAccount" else GROUP
        if kind == "ServiceAccount":
            out += bad_subdomain(f"{path}.name", name) if name else []
        if group != wanted:
            out.append(not_supported(f"{path}.apiGroup", group, (wanted,)))
        if kind == "ServiceAccount" and not self._is_namespaced and not subject.get("namespace"):
            out.append(required(f"{path}.namespace"))
        return out


def _is_bare(subject: Object) -> bool:
    return subject.get("kind") in ("User", "Group") and not subject.get("apiGroup")


def _answered(obj: Object, status: Object) -> Object:
    return {"metadata": {}, **obj, "status": status}


def _refused(path: str, value: object, text: str) -> Exception:
    return invalid_status(_AUTHORIZATION, "", "", [invalid(path, value, text)])


def _access(ctx: Context, obj: Object) -> Object:
    """SelfSubjectAccessReview."""
    spec = part(obj, "spec")
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and other is not None:
        shown = {"Path": other.get("path", ""), "Verb": other.get("verb", "")}
        raise _refused("spec.nonResourceAttributes", shown, "cannot be specified in combination with resourceAttributes")
    if resource is None and other is None:
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise _refused("spec.resourceAttributes", None, text)
    return _answered(obj, {"allowed": True})


def _access_of(ctx: Context, obj: Object) -> Object:
    """SubjectAccessReview."""
    spec = part(obj, "spec")
    if not spec.get("user") and not spec.get("groups"):
        raise _refused("spec.user", "", "at least one of user or group must be specified")
    return _access(ctx, obj)


def _local_access(ctx: Context, obj: Object) -> Object:
    """LocalSubjectAccessReview."""
    namespace = part(part(obj, "spec"), "resourceAttributes").get("namespace", "")
    if namespace != part(obj, "metadata").get("namespace", ""):
        raise _refused("spec.resourceAttributes.namespace", namespace, "must match metadata.namespace")
    return _access_of(ctx, obj)


def _rules(ctx: Context, obj: Object) -> Object:
    if not part(obj, "spec").get("namespace"):
        raise bad_request("no namespace on request")
    return _answered({**obj, "spec": {}}, {**_ALL})


def _token(ctx: Context, obj: Object) -> Object:
    if not part(obj, "spec").get("token"):
        raise bad_request("token is required for TokenReview in authentication")
    return _answered(obj, {"user": {}, "error": "invalid bearer token"})


def _self(ctx: Context, obj: Object) -> Object:
    metadata = {**part(obj, "metadata"), "creationTimestamp": timestamp(ctx.now)}
    user = {"username": ctx.user.name, "uid": ctx.user.name, "groups": list(ctx.user.groups)}
    return _answered({**obj, "metadata": metadata}, {"userInfo": user})


REVIEWS: Final[Mapping[str, Callable[[Context, Object], Object]]] = {
    "selfsubjectaccessreviews": _access,
    "subjectaccessreviews": _access_of,
    "localsubjectaccessreviews": _local_access,
    "selfsubjectrulesreviews": _rules,
    "tokenreviews": _token,
    "selfsubjectreviews": _self,
}
"""Answers by plural."""
