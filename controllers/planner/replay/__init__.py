"""Recorded inputs played to the engine with a virtual clock. Source: planner.md §26."""
