"""Finds and reads the credentials for an API server: kubeconfig files or the pod's service account.

kr8s can load kubeconfigs too, but it writes inline private keys into temporary files that stay, a new set at every re-authentication,
and reads a service account token only on re-authentication. So they are read here; `controllers.runtime.identity` keeps them fresh.
"""

import base64
import binascii
import os
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from controllers.runtime.identity import Credentials, CredentialsError, ExecSource, FileSource, Identity, Source, Trust, read_file

__all__ = ("Credentials", "CredentialsError", "Identity", "from_kubeconfig", "in_cluster", "load_credentials")

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class _Cluster(msgspec.Struct, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class _EnvVar(msgspec.Struct):
    name: str
    value: str = ""


class _Exec(msgspec.Struct, rename="camel"):
    command: str
    api_version: str = "client.authentication.k8s.io/v1"
    args: list[str] | None = None
    env: list[_EnvVar] | None = None
    provide_cluster_info: bool = False


class _User(msgspec.Struct, rename="kebab"):
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    username: str = ""
    password: str = ""
    exec: _Exec | None = None
    auth_provider: dict[str, Any] | None = None


class _Context(msgspec.Struct):
    cluster: str = ""
    user: str = ""
    namespace: str = "default"


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster
    base: Path = Path()


class _NamedUser(msgspec.Struct):
    name: str
    user: _User
    base: Path = Path()


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context


class _Config(msgspec.Struct, rename="kebab"):
    current_context: str | None = ""
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


_Named = TypeVar("_Named", _NamedCluster, _NamedUser, _NamedContext)


def load_credentials(kubeconfig: Path | None = None, context: str = "") -> Credentials:
    """Credentials from `kubeconfig`, else $KUBECONFIG, else ~/.kube/config, else the pod's service account.

    `context` picks one of the kubeconfig's contexts instead of its current one. Raises CredentialsError.
    """
    if kubeconfig is not None:
        return from_kubeconfig((kubeconfig,), context)
    listed = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    if listed:
        # kubectl ignores missing files of a list, but all of them missing is a mistake worth naming.
        return from_kubeconfig(tuple(path for path in listed if path.exists()) or tuple(listed), context)
    home = Path.home() / ".kube" / "config"
    if home.exists():
        return from_kubeconfig((home,), context)
    return in_cluster()


def in_cluster(directory: Path = SERVICE_ACCOUNT) -> Credentials:
    """Credentials of the pod's service account; token and CA are re-read as they rotate. Raises CredentialsError outside a pod."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST", ""), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (directory / "token").exists():
        raise CredentialsError(
            f"no credentials: no kubeconfig was given, KUBECONFIG is not set, {Path.home() / '.kube' / 'config'} does not exist"
            f" and {directory} holds no service account token; pass --kubeconfig FILE or set KUBECONFIG"
        )
    namespace_file = directory / "namespace"
    namespace = read_file(namespace_file, "namespace file").decode().strip() if namespace_file.exists() else "default"
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    source = FileSource(token_file=directory / "token")
    return Credentials(server, source, Trust(ca_file=directory / "ca.crt"), namespace=namespace)


def from_kubeconfig(paths: tuple[Path, ...], context: str = "") -> Credentials:
    """Credentials of one context of the merged files (the first mention of a name wins). Raises CredentialsError."""
    files = ", ".join(map(str, paths))
    configs = [_parse(path) for path in paths]
    name = context or next((c.current_context for c in configs if c.current_context), "")
    contexts = [entry for c in configs for entry in c.contexts or ()]
    if not name:
        raise CredentialsError(f"kubeconfig {files} has no current-context; pass --context, one of: {_names(contexts)}")
    where = f"kubeconfig {files}, context {name!r}"
    chosen = _pick(contexts, name, where, "context").context
    cluster = _pick([e for c in configs for e in c.clusters or ()], chosen.cluster, where, "cluster")
    user = _pick([e for c in configs for e in c.users or ()], chosen.user, where, "user") if chosen.user else _NamedUser("", _User())
    if not cluster.cluster.server.startswith(("https://", "http://")):
        raise CredentialsError(f"{where}: cluster {cluster.name!r} has no http(s) server; set clusters[].cluster.server")
    if cluster.cluster.proxy_url:
        raise CredentialsError(f"{where}: proxy-url is not supported; reach the API server directly or through a tunnel")
    trust = Trust(
        ca=_inline(cluster.cluster.certificate_authority_data, where, "certificate-authority-data"),
        ca_file=_file(cluster.base, cluster.cluster.certificate_authority, cluster.cluster.certificate_authority_data),
        insecure=cluster.cluster.insecure_skip_tls_verify,
        server_name=cluster.cluster.tls_server_name,
    )
    return Credentials(cluster.cluster.server, _source(user, cluster.cluster, where), trust, namespace=chosen.namespace)


def _parse(path: Path) -> _Config:
    try:
        config = msgspec.convert(yaml.safe_load(read_file(path, "kubeconfig")) or {}, _Config)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        # The parser's text may quote the file, which holds secrets; its type and the path do not.
        detail = str(error) if isinstance(error, msgspec.ValidationError) else type(error).__name__
        raise CredentialsError(f"kubeconfig {path} is malformed ({detail}); correct it or pass another with --kubeconfig") from None
    base = path.resolve().parent
    for entry in (*(config.clusters or ()), *(config.users or ())):
        entry.base = base
    return config


def _names(entries: list[_Named]) -> str:
    return ", ".join(repr(entry.name) for entry in entries) or "none defined"


def _pick(entries: list[_Named], name: str, where: str, what: str) -> _Named:
    for entry in entries:
        if entry.name == name:
            return entry
    raise CredentialsError(f"{where}: {what} {name!r} is not defined; defined are: {_names(entries)}")


def _file(base: Path, name: str, inline: str) -> Path | None:
    """Paths are relative to their kubeconfig; inline data wins over a file, as in kubectl."""
    return base / name if name and not inline else None


def _inline(data: str, where: str, what: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        raise CredentialsError(f"{where}: {what} is not base64") from None


def _source(named: _NamedUser, cluster: _Cluster, where: str) -> Source:
    user = named.user
    if user.auth_provider is not None:
        raise CredentialsError(f"{where}: user {named.name!r} uses auth-provider, which Kubernetes removed; use an exec plugin")
    if user.exec is not None:
        return _exec_source(user.exec, named.base, cluster)
    authorization = f"Bearer {user.token}" if user.token else ""
    if user.username and not authorization:
        authorization = "Basic " + base64.b64encode(f"{user.username}:{user.password}".encode()).decode()
    return FileSource(
        authorization=authorization,
        token_file=named.base / user.token_file if user.token_file else None,
        certificate=_inline(user.client_certificate_data, where, "client-certificate-data"),
        key=_inline(user.client_key_data, where, "client-key-data"),
        certificate_file=_file(named.base, user.client_certificate, user.client_certificate_data),
        key_file=_file(named.base, user.client_key, user.client_key_data),
    )


def _exec_source(plugin: _Exec, base: Path, cluster: _Cluster) -> ExecSource:
    spec: dict[str, Any] = {"interactive": False}
    if plugin.provide_cluster_info:
        spec["cluster"] = {
            "server": cluster.server,
            "certificate-authority-data": cluster.certificate_authority_data,
            "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
            "tls-server-name": cluster.tls_server_name,
        }
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    command = str(base / plugin.command) if os.sep in plugin.command else plugin.command
    env = {entry.name: entry.value for entry in plugin.env or ()}
    return ExecSource(command, tuple(plugin.args or ()), env, info)
