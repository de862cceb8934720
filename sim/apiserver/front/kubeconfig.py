"""A kubeconfig for the embedded server."""

from pathlib import Path

import yaml

__all__ = ("write_kubeconfig",)


def write_kubeconfig(path: Path, server: str, token: str = "", *, ca: Path | None = None, name: str = "grovekeeper") -> None:
    """One cluster, user and context, all of one `name`; readable by the owner only. Folders are made.

    `ca`: for https servers. kubectl leaves the token out of requests to http servers.
    """
    cluster = {"server": server, **({"certificate-authority": str(ca.resolve())} if ca else {})}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token} if token else {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": "default"}}],
        "current-context": name,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(yaml.safe_dump(config, sort_keys=False))
