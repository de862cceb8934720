"""Reads the numbers of protobuf fields out of the Go types of Kubernetes: python -m hack.codegen.refresh_protobuf.

Writes sim/apiserver/front/protobuf.json, message -> number -> [JSON name, kind, flags]. Kinds: s string, y bytes, i integer, t boolean,
d float, m:MESSAGE, and map:KIND for maps with string keys. Flags: r repeated, p pointer (its zero means something), o left out when empty,
n inline (JSON has its fields in place of it).
"""

import json
import re
import subprocess
from pathlib import Path

from hack.kube.binaries import KUBE_VERSION

ROOT = Path(__file__).parents[2]
OUT = ROOT / "sim" / "apiserver" / "front" / "protobuf.json"
MODULES = ("k8s.io/api", "k8s.io/apimachinery")
META = "k8s.io/apimachinery/pkg/apis/meta/v1"
GROUPS = (
    *("admissionregistration/v1", "apps/v1", "authentication/v1", "authorization/v1", "autoscaling/v1", "autoscaling/v2", "batch/v1"),
    *("coordination/v1", "core/v1", "discovery/v1", "events/v1", "networking/v1", "node/v1", "policy/v1", "rbac/v1", "resource/v1"),
    *("scheduling/v1", "storage/v1"),
)
SCALARS = {"string": "s", "[]byte": "y", "bool": "t", "int32": "i", "int64": "i", "int": "i", "float64": "d", "types.UID": "s"}
# Types that write themselves.
SPECIAL = {
    "k8s.io/apimachinery/pkg/api/resource.Quantity": "Quantity",
    "k8s.io/apimachinery/pkg/util/intstr.IntOrString": "IntOrString",
    "k8s.io/apimachinery/pkg/runtime.RawExtension": "Raw",
    f"{META}.Time": "Time",
    f"{META}.MicroTime": "MicroTime",
    f"{META}.Duration": "Duration",
    f"{META}.FieldsV1": "Raw",
    "k8s.io/apimachinery/pkg/types.UID": "s",
    "k8s.io/apimachinery/pkg/types.NodeName": "s",
    "k8s.io/apimachinery/pkg/types.NamespacedName": "s",
}
_IMPORT = re.compile(r'^\s*(?:(\w+) )?"([\w./-]+)"$', re.M)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
_ALIAS = re.compile(r"^type (\w+) (string|bool|int32|int64|map\[\S+|\[\]\S+)(?: .*)?$", re.M)
_FIELD = re.compile(r'^\t(?:(\w+)\s+)?(\S+)\s+`json:"([^"]*)"[^`\n]* protobuf:"([^"]*)"', re.M)


class Package:
    """One Go package. `name`: core/v1 and the like."""

    def __init__(self, name: str, path: str, folder: Path) -> None:
        self.name, self.path = name, path
        text = "\n".join(file.read_text() for file in sorted(folder.glob("types.go")))
        self.imports = {alias or target.rsplit("/", 1)[-1]: target for alias, target in _IMPORT.findall(text)}
        self.structs: dict[str, str] = dict(_STRUCT.findall(text))
        self.aliases: dict[str, str] = dict(_ALIAS.findall(text))


def main() -> None:
    """Writes the file."""
    packages = _packages()
    out: dict[str, dict[str, list[str]]] = {}
    for package in packages.values():
        for struct, body in package.structs.items():
            if fields := _fields(package, body, packages):
                out[f"{package.name}.{struct}"] = fields
    OUT.write_text(json.dumps({"kubernetes": f"v{KUBE_VERSION}", "messages": out}, separators=(",", ":"), sort_keys=True) + "\n")
    print(f"{OUT.relative_to(ROOT)}: {len(out)} messages")


def _packages() -> dict[str, Package]:
    api, machinery = (_folder(module) for module in MODULES)
    found = {f"{MODULES[0]}/{group}": Package(group, f"{MODULES[0]}/{group}", api / group) for group in GROUPS}
    found[META] = Package("meta/v1", META, machinery / "pkg" / "apis" / "meta" / "v1")
    return found


def _folder(module: str) -> Path:
    version = f"v0.{KUBE_VERSION.partition('.')[2]}"
    argv = ["go", "mod", "download", "-json", f"{module}@{version}"]
    return Path(json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)["Dir"])


def _fields(package: Package, body: str, packages: dict[str, Package]) -> dict[str, list[str]]:
    fields: dict[str, list[str]] = {}
    for _, kind, tags, wire in _FIELD.findall(body):
        number = wire.split(",")[1]
        name, *options = tags.split(",")
        flags = ""
        if kind.startswith("*"):
            kind, flags = kind[1:], "p"
        if kind.startswith("[]") and kind != "[]byte":
            kind, flags = kind[2:], f"{flags}r"
        flags += "o" if "omitempty" in options else ""
        flags += "n" if "inline" in options else ""
        code = _code(package, kind, packages)
        if code.startswith("[]"):
            code, flags = code[2:], f"{flags}r"
        fields[number] = [name, code, flags]
    return fields


def _code(package: Package, kind: str, packages: dict[str, Package]) -> str:
    if kind in SCALARS:
        return SCALARS[kind]
    if kind.startswith("map["):
        return f"map:{_code(package, kind.partition(']')[2], packages)}"
    if "." in kind:
        alias, _, name = kind.partition(".")
        home = package.imports[alias]
    else:
        home, name = package.path, kind
    if (special := SPECIAL.get(f"{home}.{name}")) is not None:
        return special
    other = packages[home]
    if name in other.structs:
        return f"m:{other.name}.{name}"
    target = other.aliases[name]
    # A named list is a message of its own on the wire.
    return f"list:{_code(other, target[2:], packages)}" if target.startswith("[]") else _code(other, target, packages)


if __name__ == "__main__":
    main()
