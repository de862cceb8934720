"""Makes the Helm chart in manifests/chart from the kustomize base and components: `python -m hack.codegen [--check]`."""
