"""The Common Expression Language as kube-apiserver offers it to CRDs: parsed once, then evaluated by closures."""
