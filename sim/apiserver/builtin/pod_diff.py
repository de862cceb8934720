"""Diffs in refusals of updates: of the server's inner form of specs, which prints every field there is."""

import json
from collections.abc import Mapping
from difflib import unified_diff
from typing import Any, Final

from sim.apiserver.builtin.parts import part
from sim.apiserver.objects import Object, as_map

__all__ = ("claim_diff", "go_spec", "spec_diff")

_STRUCTS: Final[Mapping[str, str]] = {
    "PodSpec": (
        "Volumes:Volume* InitContainers:Container* Containers:Container* EphemeralContainers:Container* RestartPolicy=s "
        "TerminationGracePeriodSeconds ActiveDeadlineSeconds DNSPolicy=s NodeSelector ServiceAccountName=s AutomountServiceAccountToken "
        "NodeName=s SecurityContext:PodSecurity ImagePullSecrets:Reference* Hostname=s Subdomain=s SetHostnameAsFQDN Affinity:Affinity "
        "SchedulerName=s Tolerations:Toleration* HostAliases:Alias* PriorityClassName=s Priority PreemptionPolicy DNSConfig:DNS "
        "ReadinessGates:Gate* RuntimeClassName Overhead EnableServiceLinks TopologySpreadConstraints:Spread* OS:Name SchedulingGates:Name* "
        "ResourceClaims:Claim* Resources:Resources HostnameOverride SchedulingGroup"
    ),
    "Container": (
        "Name=s Image=s Command Args WorkingDir=s Ports:Port* EnvFrom:EnvFrom* Env:Env* Resources:Resources ResizePolicy RestartPolicy "
        "RestartPolicyRules VolumeMounts:Mount* VolumeDevices:Device* LivenessProbe:Probe ReadinessProbe:Probe StartupProbe:Probe "
        "Lifecycle:Lifecycle TerminationMessagePath=s TerminationMessagePolicy=s ImagePullPolicy=s SecurityContext:Security Stdin=b "
        "StdinOnce=b TTY=b"
    ),
    "PodSecurity": (
        "HostNetwork=b HostPID=b HostIPC=b ShareProcessNamespace HostUsers SELinuxOptions:SELinux WindowsOptions RunAsUser RunAsGroup "
        "RunAsNonRoot SupplementalGroups SupplementalGroupsPolicy FSGroup FSGroupChangePolicy Sysctls:Pair* SeccompProfile:Profile "
        "AppArmorProfile:Profile SELinuxChangePolicy"
    ),
    "Security": (
        "Capabilities:Capabilities Privileged SELinuxOptions:SELinux WindowsOptions RunAsUser RunAsGroup RunAsNonRoot "
        "ReadOnlyRootFilesystem AllowPrivilegeEscalation ProcMount SeccompProfile:Profile AppArmorProfile:Profile"
    ),
    "Volume": (
        "Name=s HostPath:HostPath EmptyDir:EmptyDir GCEPersistentDisk AWSElasticBlockStore GitRepo Secret:SecretVolume NFS ISCSI Glusterfs "
        "PersistentVolumeClaim:ClaimVolume RBD Quobyte FlexVolume Cinder CephFS Flocker DownwardAPI FC AzureFile ConfigMap:MapVolume "
        "VsphereVolume AzureDisk PhotonPersistentDisk Projected PortworxVolume ScaleIO StorageOS CSI Ephemeral Image"
    ),
    "ClaimSpec": (
        "AccessModes Selector Resources:Amounts VolumeName=s StorageClassName VolumeMode DataSource DataSourceRef VolumeAttributesClassName"
    ),
    "Amounts": "Limits Requests",
    "HostPath": "Path=s Type",
    "EmptyDir": "Medium=s SizeLimit",
    "SecretVolume": "SecretName=s Items DefaultMode Optional",
    "MapVolume": "Name=s Items DefaultMode Optional",
    "ClaimVolume": "ClaimName=s ReadOnly=b",
    "Port": "Name=s HostPort=i ContainerPort=i Protocol=s HostIP=s",
    "EnvFrom": "Prefix=s ConfigMapRef:MaybeReference SecretRef:MaybeReference",
    "Env": "Name=s Value=s ValueFrom:EnvSource",
    "EnvSource": "FieldRef:FieldRef ResourceFieldRef:ResourceRef ConfigMapKeyRef:KeyRef SecretKeyRef:KeyRef FileKeyRef",
    "FieldRef": "APIVersion=s FieldPath=s",
    "ResourceRef": "ContainerName=s Resource=s Divisor=s",
    "KeyRef": "Name=s Key=s Optional",
    "MaybeReference": "Name=s Optional",
    "Reference": "Name=s",
    "Name": "Name=s",
    "Resources": "Limits Requests Claims:ClaimUse*",
    "ClaimUse": "Name=s Request=s",
    "Claim": "Name=s ResourceClaimName ResourceClaimTemplateName",
    "Mount": "Name=s ReadOnly=b RecursiveReadOnly MountPath=s SubPath=s MountPropagation SubPathExpr=s",
    "Device": "Name=s DevicePath=s",
    "Probe": (
        "Exec:Exec HTTPGet:HTTP TCPSocket:TCP GRPC:GRPC InitialDelaySeconds=i TimeoutSeconds=i PeriodSeconds=i SuccessThreshold=i "
        "FailureThreshold=i TerminationGracePeriodSeconds"
    ),
    "Handler": "Exec:Exec HTTPGet:HTTP TCPSocket:TCP Sleep:Sleep",
    "Lifecycle": "PostStart:Handler PreStop:Handler StopSignal",
    "Exec": "Command",
    "HTTP": "Path=s Port Host=s Scheme=s HTTPHeaders:Pair*",
    "TCP": "Port Host=s",
    "GRPC": "Port=i Service",
    "Sleep": "Seconds=i",
    "Capabilities": "Add Drop",
    "SELinux": "User=s Role=s Type=s Level=s",
    "Profile": "Type=s LocalhostProfile",
    "Pair": "Name=s Value=s",
    "Toleration": "Key=s Operator=s Value=s Effect=s TolerationSeconds",
    "Alias": "IP=s Hostnames",
    "DNS": "Nameservers Searches Options:Option*",
    "Option": "Name=s Value",
    "Gate": "ConditionType=s",
    "Spread": "MaxSkew=i TopologyKey=s WhenUnsatisfiable=s LabelSelector MinDomains NodeAffinityPolicy NodeTaintsPolicy MatchLabelKeys",
    "Affinity": "NodeAffinity:NodeAffinity PodAffinity:PodAffinity PodAntiAffinity:PodAffinity",
    "NodeAffinity": "RequiredDuringSchedulingIgnoredDuringExecution:Terms PreferredDuringSchedulingIgnoredDuringExecution:NodeWish*",
    "PodAffinity": "RequiredDuringSchedulingIgnoredDuringExecution:PodTerm* PreferredDuringSchedulingIgnoredDuringExecution:PodWish*",
    "Terms": "NodeSelectorTerms:Term*",
    "Term": "MatchExpressions:Wanted* MatchFields:Wanted*",
    "Wanted": "Key=s Operator=s Values",
    "NodeWish": "Weight=i Preference:Term",
    "PodWish": "Weight=i PodAffinityTerm:PodTerm",
    "PodTerm": "LabelSelector Namespaces TopologyKey=s NamespaceSelector MatchLabelKeys MismatchLabelKeys",
}
"""Fields of the inner structs in their order. `=`: zero value (s "", i 0, b false; else null), `:`: struct, with * a list of it."""
_ZERO: Final[Mapping[str, Any]] = {"s": "", "i": 0, "b": False, "": None}
_ACRONYMS: Final = ("DNS", "OS", "GCE", "AWS", "NFS", "ISCSI", "RBD", "FC", "CSI", "HTTP", "TCP", "TTY", "API", "IP", "GRPC", "FS")
_LINES_AROUND: Final = 3


def spec_diff(old: Object, new: Object) -> str:
    """A unified diff of pod specs without a header, ending in a line break."""
    return _diff(go_spec(old), go_spec(new))


def claim_diff(old: Object, new: Object) -> str:
    """The same of specs of PersistentVolumeClaims."""
    return _diff(_struct("ClaimSpec", old), _struct("ClaimSpec", new))


def go_spec(spec: Object) -> Object:
    """A pod spec in the inner form."""
    return _struct("PodSpec", _moved(spec))


def _diff(old: Object, new: Object) -> str:
    lines = [json.dumps(spec, indent=1, ensure_ascii=False).splitlines() for spec in (old, new)]
    hunks = list(unified_diff(lines[0], lines[1], n=_LINES_AROUND, lineterm=""))[2:]
    return "".join(f"{line}\n" for line in hunks)


def _moved(spec: Object) -> Object:
    """A spec whose host namespaces are part of the security context, as in the inner form."""
    shared = {k: spec[k] for k in ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers") if k in spec}
    return {**spec, "securityContext": {**part(spec, "securityContext"), **shared}}


def _struct(name: str, value: Object) -> Object:
    out: Object = {}
    for word in _STRUCTS[name].split():
        go, _, zero = word.partition("=")
        go, _, inner = go.partition(":")
        given = value.get(_json_name(go))
        if inner.endswith("*"):
            out[go] = [_struct(inner[:-1], item) for item in given] if given else None
        elif inner:
            out[go] = None if given is None else _struct(inner, given)
        elif given is None or given in ({}, []):
            out[go] = given if go == "LabelSelector" else _ZERO[zero]
        else:
            out[go] = given if go == "LabelSelector" else _sorted(given)
    return out


def _sorted(value: Any) -> Any:
    fields = as_map(value)
    return value if fields is None else dict(sorted(fields.items()))


def _json_name(go: str) -> str:
    """The name in JSON: the first word in lower case."""
    if go == "SELinuxOptions" or go == "SELinuxChangePolicy":
        return "se" + go[2:]
    for acronym in _ACRONYMS:
        if go.startswith(acronym) and (len(go) == len(acronym) or go[len(acronym)].isupper()):
            return acronym.lower() + go[len(acronym) :]
    return go[0].lower() + go[1:]
