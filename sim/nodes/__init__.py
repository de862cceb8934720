"""Simulated nodes: how they look, what is done when they are lost, and what can be done to them."""
