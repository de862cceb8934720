"""The startup waiter: the init container that holds a pod back until its parent PodCliques are ready."""
