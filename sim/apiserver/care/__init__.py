"""What kube-controller-manager does to every object: garbage collection by owner, and the end of namespaces."""
