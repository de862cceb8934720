"""A whole cluster in one event loop: embedded API server, kubelets, nodes, and our processes, which can crash and stand still."""
