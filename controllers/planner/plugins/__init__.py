"""Plugins of Planner: who they are, when they are asked, and how."""
