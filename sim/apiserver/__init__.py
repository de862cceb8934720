"""An embedded Kubernetes API server that keeps its objects in memory: semantics of kube-apiserver, without authentication."""
