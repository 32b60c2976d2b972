"""What users and agents may do to images, builds and registries."""
