"""The browser's pages: each view reads models and renders a template; changes go through the REST API."""
