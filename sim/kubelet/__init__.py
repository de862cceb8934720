"""The kubelets of all simulated nodes: pods start, wait, crash, end and go away as on real ones, in virtual or real time."""
