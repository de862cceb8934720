"""A kubeconfig without key material inside, for kr8s: it would write inline keys to temporary files that stay."""

import base64
from pathlib import Path
from typing import Any

import yaml

__all__ = ("with_files",)

INLINE = (
    ("clusters", "cluster", "certificate-authority"),
    ("users", "user", "client-certificate"),
    ("users", "user", "client-key"),
)


def with_files(source: Path, folder: Path) -> Path:
    """A copy of a kubeconfig in `folder` whose inline certificates and keys are files there, readable by the owner only."""
    config: dict[str, Any] = yaml.safe_load(source.read_text())
    for part, inner, key in INLINE:
        for entry in config[part]:
            data = entry[inner].pop(f"{key}-data", None)
            if data is not None:
                path = folder / f"{entry['name']}-{key}.pem"
                path.touch(mode=0o600)
                path.write_bytes(base64.b64decode(data))
                entry[inner][key] = str(path)
    copy = folder / "kubeconfig"
    copy.touch(mode=0o600)
    copy.write_text(yaml.safe_dump(config, sort_keys=False))
    return copy
