"""Builds the image: see Dockerfile."""
