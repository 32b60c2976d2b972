"""Images, their builds, and the registries they come from."""
