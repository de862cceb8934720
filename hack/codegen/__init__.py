"""Generates the CustomResourceDefinitions from the models in api: `python -m hack.codegen [--check]`."""
