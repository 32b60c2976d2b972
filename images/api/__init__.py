"""REST endpoints of registries, images and builds."""
