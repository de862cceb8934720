"""What the tests run: a small model with a router, prefill engines of leader and worker, and decode engines, on pods that really run.

An engine is a web server of the image under test that answers with its Grove environment and asks others on request.
"""

from typing import Any

__all__ = ("ASK", "PORT", "TOPOLOGY", "chat", "late")

Manifest = dict[str, Any]

PORT = 8000
TOPOLOGY = "cluster"
"""Name of the ClusterTopologyBinding of manifests/samples/topology.yaml."""
SERVE = f"""
import http.server, json, os, signal, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({{k: v for k, v in os.environ.items() if k.startswith(("GROVE_", "HOSTNAME", "SAID"))}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
http.server.ThreadingHTTPServer(("", {PORT}), Answer).serve_forever()
"""
ASK = f"""
import json, sys, urllib.request
for name in sys.argv[1:]:
    try:
        with urllib.request.urlopen(f"http://{{name}}:{PORT}/", timeout=5) as answer:
            print(json.dumps({{"name": name, "answer": json.load(answer)}}))
    except OSError as error:
        print(json.dumps({{"name": name, "error": str(error)}}))
"""
"""Program for `python -c`: asks each host that it is given and prints one JSON line per host."""
SECURITY: Manifest = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def engine(image: str, gpus: int, slow_start_s: int = 0) -> Manifest:
    """A pod of one engine; ready `slow_start_s` after its start at the earliest."""
    probe = {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 1, "initialDelaySeconds": slow_start_s}
    container: Manifest = {
        "name": "engine",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-c", SERVE],
        # Upstream's users find each other so: expanded by the kubelet, because Grove's variables come first.
        "env": [{"name": "SAID", "value": "$(GROVE_PCLQ_NAME)-$(GROVE_PCLQ_POD_INDEX).$(GROVE_HEADLESS_SERVICE)"}],
        "readinessProbe": probe,
        "securityContext": SECURITY,
        "resources": {"requests": {"cpu": "5m", "memory": "16Mi"}},
    }
    if gpus:
        container["resources"]["limits"] = {"nvidia.com/gpu": str(gpus)}
    return {"terminationGracePeriodSeconds": 5, "containers": [container]}


def clique(name: str, image: str, *, replicas: int = 1, gpus: int = 0, after: tuple[str, ...] = (), slow_start_s: int = 0) -> Manifest:
    """One clique template with minAvailable 1."""
    spec: Manifest = {"roleName": name, "replicas": replicas, "minAvailable": 1, "podSpec": engine(image, gpus, slow_start_s)}
    if after:
        spec["startsAfter"] = list(after)
    return {"name": name, "spec": spec}


def chat(image: str, name: str = "chat") -> Manifest:
    """Seven pods on six GPUs: router, two decode engines, two prefill engines of a leader and a worker each, whose pods share a rack.

    Workers start after their leader, the router after leader and decode. The second prefill engine is a gang of its own.
    """
    template: Manifest = {
        "cliqueStartupType": "CliqueStartupTypeExplicit",
        "topologyConstraint": {"topologyName": TOPOLOGY, "pack": {"preferred": "block"}},
        "cliques": [
            clique("router", image, after=("leader", "decode")),
            clique("leader", image, gpus=1, slow_start_s=3),
            clique("worker", image, gpus=1, after=("leader",)),
            clique("decode", image, replicas=2, gpus=1),
        ],
        "podCliqueScalingGroups": [
            {
                "name": "prefill",
                "cliqueNames": ["leader", "worker"],
                "replicas": 2,
                "minAvailable": 1,
                "topologyConstraint": {"pack": {"required": "rack"}},
            }
        ],
    }
    return _set(name, template)


def late(image: str, name: str = "late") -> Manifest:
    """Two pods with four GPUs each that have to share a rack: a whole worker."""
    whole = clique("engine", image, replicas=2, gpus=4)
    whole["spec"]["minAvailable"] = 2
    template = {"topologyConstraint": {"topologyName": TOPOLOGY, "pack": {"required": "rack"}}, "cliques": [whole]}
    return _set(name, template)


def _set(name: str, template: Manifest) -> Manifest:
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": name},
        "spec": {"replicas": 1, "template": template},
    }
