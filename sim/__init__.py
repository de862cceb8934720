"""Everything that Grovekeeper needs of a cluster, simulated: API server, kubelet, nodes, time and faults."""
