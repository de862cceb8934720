"""Planner: how many prefill and decode engines run. The decision core is a function of its inputs; replay runs it without a cluster."""
