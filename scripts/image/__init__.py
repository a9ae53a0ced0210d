"""Builds the Dockerfile and runs the image where no Docker engine is: buildah, debootstrap and namespaces."""
