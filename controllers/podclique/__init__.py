"""PodClique controller: pods of one clique, their gates and the clique's status."""
