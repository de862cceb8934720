"""Records what a real kube-apiserver prints for the objects of `table_objects`: python -m tests.kubectl.record_tables KUBECONFIG OUT.

The server should be fresh. Writes a JSON file of path -> {table, list}, with each list in the order of the table's rows.
"""

import http.client
import json
import ssl
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import tests.kubectl.table_objects as made
from hack.kube.client import read_kubeconfig

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
JSON = "application/json"


class Recorder:
    def __init__(self, kubeconfig: Path) -> None:
        access = read_kubeconfig(kubeconfig)
        address = urlsplit(access.server)
        context = ssl.create_default_context(cafile=access.ca)
        self.connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=context)
        self.token = access.token

    def send(self, method: str, path: str, body: Any = None, accept: str = JSON, content_type: str = JSON) -> Any:
        head = {"Authorization": f"Bearer {self.token}", "Accept": accept, "Content-Type": content_type}
        self.connection.request(method, path, None if body is None else json.dumps(body), head)
        answer = self.connection.getresponse()
        data = json.loads(answer.read())
        if answer.status >= 400 and answer.status not in (404, 409):
            print(method, path, answer.status, data.get("message"), file=sys.stderr)  # noqa: T201 - a program
        return data

    def make(self, path: str, objects: list[dict[str, Any]]) -> None:
        for obj in objects:
            self.send("POST", path, {k: v for k, v in obj.items() if k != "status"})
            if status := obj.get("status"):
                name = obj["metadata"]["name"]
                self.send("PATCH", f"{path}/{name}/status", {"status": status}, content_type="application/merge-patch+json")

    def record(self, path: str, names: list[str]) -> dict[str, Any]:
        table, listed = self.send("GET", path, accept=TABLE), self.send("GET", path)
        rows = {row["object"]["metadata"]["name"]: row for row in table["rows"]}
        table["rows"] = [rows[name] for name in names]
        items = {item["metadata"]["name"]: item for item in listed["items"]}
        return {"table": table, "items": [items[name] for name in names]}


def main() -> None:
    recorder = Recorder(Path(sys.argv[1]))
    recorder.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", made.definition())
    recorder.send("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    out: dict[str, Any] = {}
    for path, objects in made.OBJECTS.items():
        recorder.make(path, objects)
    for name in made.ENDING:
        recorder.send("DELETE", f"/api/v1/namespaces/default/pods/{name}")
    time.sleep(3)  # until the custom resource is served
    recorder.make(made.CUSTOM_PATH, made.CUSTOM)
    for path, objects in {**made.OBJECTS, made.CUSTOM_PATH: made.CUSTOM}.items():
        out[path] = recorder.record(path, [str(obj["metadata"]["name"]) for obj in objects])
    for recorded in out.values():
        for obj in [*recorded["items"], *(row["object"] for row in recorded["table"]["rows"])]:
            obj["metadata"].pop("managedFields", None)
            # Left over from a conversion inside the real server; lists do not have it.
            if "deprecated.daemonset.template.generation" in obj["metadata"].get("annotations", {}):
                del obj["metadata"]["annotations"]
        for column in recorded["table"]["columnDefinitions"]:
            column["description"] = ""
    Path(sys.argv[2]).write_text(json.dumps({"recorded_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "paths": out}) + "\n")


if __name__ == "__main__":
    main()
