"""Tests of images, builds and registries."""
