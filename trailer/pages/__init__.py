"""The browser's pages: views read and render; every change goes through the REST API."""
