"""Behaviour of the kinds that every cluster has: defaults, checks and subresources."""
