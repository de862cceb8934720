"""Templates of the chart: every document of the base and of the components, with what the values decide in place of what the files say."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import yaml

from api.operatorconfig import LeaderElection
from api.registry import MODELS, crd_name
from hack.chart.drafts import Draft
from hack.codegen.files import ROOT

__all__ = ("HEADER", "MANIFESTS", "documents", "templates")

MANIFESTS = ROOT / "manifests"
HEADER = "{{- /* Generated from manifests/base and manifests/components by `python -m hack.codegen`. */ -}}\n"
LABELS = "app.kubernetes.io/"
Manifest: TypeAlias = dict[str, Any]
Edit: TypeAlias = Callable[[Draft, Manifest], Manifest]

# Quoted, because names may look like numbers and truth values.
NAMESPACE = "{{ .Release.Namespace | quote }}"
LEASE = '{{ include "grovekeeper.leaseName" . | quote }}'
LEASE_NAMESPACE = '{{ include "grovekeeper.leaseNamespace" . | quote }}'
HOOK = {
    "helm.sh/hook": "pre-install,pre-upgrade",
    "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
}


def documents(path: str) -> Iterator[Manifest]:
    """The documents of a file below manifests."""
    yield from yaml.safe_load_all((MANIFESTS / path).read_text(encoding="utf-8"))


def templates() -> dict[str, str]:
    """File name below templates → text."""
    scheduler = ".Values.scheduler.enabled"
    metrics = "or .Values.metrics.service.enabled .Values.metrics.serviceMonitor.enabled"
    budget = ".Values.podDisruptionBudget.enabled"
    return {
        "config.yaml": HEADER + '{{- include "grovekeeper.check" . }}\n' + _config(),
        "controllers.yaml": _file("base/controllers.yaml", _process("controllers")),
        "controllers-rbac.yaml": _file("base/controllers-rbac.yaml", _rights),
        "crds.yaml": _when(".Values.crds.install", _installation()),
        "metrics.yaml": _when(metrics, _of("components/metrics/services.yaml", {"scheduler": scheduler})),
        "network-policy.yaml": _when(".Values.networkPolicy.enabled", _of("components/network-policy/network-policy.yaml", {})),
        "pod-disruption-budgets.yaml": _when(
            budget, _of("components/pod-disruption-budgets/budgets.yaml", {"scheduler": scheduler}, _budget)
        ),
        "roles.yaml": _when(".Values.rbac.userRoles", _of("base/roles.yaml", {})),
        "scheduler.yaml": _when(scheduler, _of("base/scheduler.yaml", {}, _process("scheduler"))),
        "scheduler-rbac.yaml": _when(scheduler, _of("base/scheduler-rbac.yaml", {}, _rights)),
        "service-monitor.yaml": _when(
            ".Values.metrics.serviceMonitor.enabled", _of("components/service-monitor/service-monitor.yaml", {}, _monitor)
        ),
    }


def _file(path: str, edit: Edit) -> str:
    return HEADER + _of(path, {}, edit)


def _when(condition: str, body: str) -> str:
    return f"{HEADER}{{{{- if {condition} }}}}\n{body}{{{{- end }}}}\n"


def _same(draft: Draft, document: Manifest) -> Manifest:
    return document


def _of(path: str, conditions: Mapping[str, str], edit: Edit = _same) -> str:
    """All documents of a file. `conditions`: by component, when there are its documents."""
    out: list[str] = []
    for document in documents(path):
        component = document["metadata"].get("labels", {}).get(f"{LABELS}component", "")
        text = "---\n" + _document(document, edit)
        out.append(f"{{{{- if {conditions[component]} }}}}\n{text}{{{{- end }}}}\n" if component in conditions else text)
    return "".join(out)


def _document(document: Manifest, edit: Edit) -> str:
    """Labels and namespace are those of the release, the rest is for `edit`."""
    draft = Draft()
    found: Manifest = document["metadata"]
    own = {k: v for k, v in found.get("labels", {}).items() if k not in (f"{LABELS}name", f"{LABELS}part-of")}
    metadata: Manifest = {"name": found["name"]}
    if not document["kind"].startswith("Cluster"):
        metadata["namespace"] = draft.value(NAMESPACE)
    metadata["labels"] = {draft.lines('{{- include "grovekeeper.labels" . | nindent <COL> }}'): None, **own}
    if "annotations" in found:
        metadata["annotations"] = found["annotations"]
    return draft.write(edit(draft, {**document, "metadata": metadata}))


def _config() -> str:
    """The configuration as a ConfigMap; without a hash in its name, so pods carry one in an annotation."""
    draft = Draft()
    shipped = yaml.safe_load((MANIFESTS / "config" / "controllers.yaml").read_text(encoding="utf-8"))
    content = draft.lines(
        "controllers.yaml: |",
        f"  apiVersion: {shipped['apiVersion']}",
        f"  kind: {shipped['kind']}",
        "  {{- toYaml .Values.config | nindent <IN> }}",
    )
    labels = {draft.lines('{{- include "grovekeeper.labels" . | nindent <COL> }}'): None}
    metadata = {"name": "grovekeeper-config", "namespace": draft.value(NAMESPACE), "labels": labels}
    return "---\n" + draft.write({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {content: None}})


def _process(component: str) -> Edit:
    """The ServiceAccount and the Deployment of a process."""

    def edit(draft: Draft, document: Manifest) -> Manifest:
        metadata, values = document["metadata"], f".Values.{component}"
        if document["kind"] == "ServiceAccount":
            metadata = {**metadata, draft.optional("annotations", f"{values}.serviceAccount.annotations"): None}
            return {**document, "metadata": metadata}
        spec: Manifest = document["spec"]
        template: Manifest = spec["template"]
        pod = _pod(draft, template["spec"], values)
        (container,) = pod["containers"]
        kept = {k: v for k, v in container.items() if k != "resources"}
        pod["containers"] = [{**kept, draft.optional("resources", f"{values}.resources"): None}]
        annotations = {
            **template["metadata"]["annotations"],
            "checksum/config": draft.value('{{ include (print $.Template.BasePath "/config.yaml") . | sha256sum }}'),
            draft.lines(f"{{{{- with {values}.podAnnotations }}}}", "{{- toYaml . | nindent <COL> }}", "{{- end }}"): None,
        }
        extra = draft.lines("{{- with .Values.extraLabels }}", "{{- toYaml . | nindent <COL> }}", "{{- end }}")
        own = {f"{LABELS}name": "grovekeeper", f"{LABELS}part-of": "grovekeeper", **template["metadata"]["labels"], extra: None}
        changed = {"metadata": {"labels": own, "annotations": annotations}, "spec": pod}
        spec = {**spec, "replicas": draft.value(f"{{{{ {values}.replicas }}}}"), "template": changed}
        return {**document, "spec": spec}

    return edit


def _pod(draft: Draft, pod: Manifest, values: str) -> Manifest:
    """What the values say about where pods run and what they are made of; `values`: path of the process."""
    (found,) = pod["containers"]
    image = draft.value('{{ include "grovekeeper.image" . | quote }}')
    container: Manifest = {**found, "image": image, "imagePullPolicy": draft.value("{{ .Values.image.pullPolicy }}")}
    if "env" in container:
        environment: list[Manifest] = container["env"]
        container["env"] = [{**e, "value": image} if e["name"] == "GROVE_INIT_CONTAINER_IMAGE" else e for e in environment]
    spread = [{**s, "whenUnsatisfiable": draft.value(f"{{{{ {values}.topologySpread }}}}")} for s in pod["topologySpreadConstraints"]]
    kept = {k: v for k, v in pod.items() if k not in ("nodeSelector", "topologySpreadConstraints", "containers", "volumes")}
    return {
        **kept,
        draft.optional("imagePullSecrets", ".Values.image.pullSecrets"): None,
        draft.lines(f"{{{{- with {values}.priorityClassName }}}}", "priorityClassName: {{ . | quote }}", "{{- end }}"): None,
        draft.optional("nodeSelector", f"{values}.nodeSelector"): None,
        draft.optional("tolerations", f"{values}.tolerations"): None,
        draft.optional("affinity", f"{values}.affinity"): None,
        "topologySpreadConstraints": spread,
        "containers": [container],
        "volumes": pod["volumes"],
    }


def _rights(draft: Draft, document: Manifest) -> Manifest:
    """Roles and bindings. Leases are where the configuration has them; what needs a right that is not in the base adds it."""
    if "subjects" in document:
        namespace = draft.value(NAMESPACE)
        document = {**document, "subjects": [{**s, "namespace": namespace} for s in document["subjects"]]}
    if document["kind"] in ("Role", "RoleBinding"):
        document = {**document, "metadata": {**document["metadata"], "namespace": draft.value(LEASE_NAMESPACE)}}
    if document["kind"] == "Role":
        return {**document, "rules": [_lease_rule(draft, rule) for rule in document["rules"]]}
    if (document["kind"], document["metadata"]["name"]) == ("ClusterRole", "grovekeeper-controllers"):
        secrets = _rule_lines("waiter-secrets", 'ne (dig "grovekeeper" "token" "secret" .Values.config) "projected"')
        owners = _rule_lines("owner-references", ".Values.rbac.ownerReferences")
        return {**document, draft.lines(*secrets, *owners): None}
    return document


def _lease_rule(draft: Draft, rule: Manifest) -> Manifest:
    """The lease of the controllers has the name that the configuration gives it."""
    names = {LeaderElection().resource_name: draft.value(LEASE)}
    return {**rule, "resourceNames": [names.get(n, n) for n in rule["resourceNames"]]} if "resourceNames" in rule else rule


def _rule_lines(component: str, condition: str) -> tuple[str, ...]:
    """The rule that a component adds, under a condition."""
    (patch,) = yaml.safe_load((MANIFESTS / "components" / component / "kustomization.yaml").read_text(encoding="utf-8"))["patches"]
    rules = [operation["value"] for operation in yaml.safe_load(patch["patch"])]
    return (f"{{{{- if {condition} }}}}", *yaml.safe_dump(rules, sort_keys=False).splitlines(), "{{- end }}")


def _budget(draft: Draft, document: Manifest) -> Manifest:
    spec = {**document["spec"], "maxUnavailable": draft.value("{{ .Values.podDisruptionBudget.maxUnavailable }}")}
    return {**document, "spec": spec}


def _monitor(draft: Draft, document: Manifest) -> Manifest:
    monitor = ".Values.metrics.serviceMonitor"
    extra = draft.lines(f"{{{{- with {monitor}.labels }}}}", "{{- toYaml . | nindent <COL> }}", "{{- end }}")
    metadata = {**document["metadata"], "labels": {**document["metadata"]["labels"], extra: None}}
    (endpoint,) = document["spec"]["endpoints"]
    endpoints = [{**endpoint, "interval": draft.value(f"{{{{ {monitor}.interval | quote }}}}")}]
    return {**document, "metadata": metadata, "spec": {**document["spec"], "endpoints": endpoints}}


def _installation() -> str:
    """A hook that runs `grovekeeper install --crds` before everything else, with an account that may do nothing else."""
    name = "grovekeeper-install-crds"
    resource = {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"]}
    names = [crd_name(model) for model in MODELS]
    rules = [{**resource, "verbs": ["create"]}, {**resource, "resourceNames": names, "verbs": ["get", "patch"]}]
    rbac = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": name, "namespace": ""}
    made: list[tuple[int, Manifest]] = [
        (-10, {"apiVersion": "v1", "kind": "ServiceAccount", "automountServiceAccountToken": False}),
        (-10, {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "rules": rules}),
        (
            -10,
            {
                "apiVersion": f"{rbac}/v1",
                "kind": "ClusterRoleBinding",
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
                "subjects": [subject],
            },
        ),
        (-5, {"apiVersion": "batch/v1", "kind": "Job"}),
    ]
    out: list[str] = []
    for weight, document in made:
        annotations = {**HOOK, "helm.sh/hook-weight": str(weight)}
        metadata = {"name": name, "labels": {f"{LABELS}component": "install"}, "annotations": annotations}
        head = {"apiVersion": document["apiVersion"], "kind": document["kind"], "metadata": metadata}
        edit = _installer if document["kind"] == "Job" else _rights
        out.append("---\n" + _document({**head, **document}, edit))
    return "".join(out)


def _installer(draft: Draft, document: Manifest) -> Manifest:
    """The Job: the container of the controllers with another command and nothing mounted."""
    (deployment,) = [d for d in documents("base/controllers.yaml") if d["kind"] == "Deployment"]
    pod: Manifest = {k: v for k, v in deployment["spec"]["template"]["spec"].items() if k != "terminationGracePeriodSeconds"}
    pod = {**_pod(draft, pod, ".Values.controllers"), "serviceAccountName": document["metadata"]["name"], "restartPolicy": "Never"}
    del pod["topologySpreadConstraints"], pod["volumes"]
    (container,) = pod.pop("containers")
    kept = ("image", "imagePullPolicy", "terminationMessagePolicy", "securityContext")
    pod["containers"] = [
        {
            "name": "install",
            **{k: container[k] for k in kept},
            "args": ["install", "--crds", draft.lines("{{- if .Values.crds.force }}", "- --force", "{{- end }}")],
            "resources": {"requests": {"cpu": "50m", "memory": "96Mi"}, "limits": {"memory": "256Mi"}},
        }
    ]
    labels = {f"{LABELS}name": "grovekeeper", f"{LABELS}part-of": "grovekeeper", f"{LABELS}component": "install"}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {**document, "spec": {"backoffLimit": 3, "activeDeadlineSeconds": 300, "template": template}}
