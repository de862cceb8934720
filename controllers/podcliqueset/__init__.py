"""PodCliqueSet controller: identity and access of the pods, services, autoscalers, cliques, groups, gangs and the set's status."""
