"""Measurements on a real control plane with simulated nodes."""
