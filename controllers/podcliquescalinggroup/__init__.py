"""PodCliqueScalingGroup controller: the member PodCliques of each replica and the group's status."""
