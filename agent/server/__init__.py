"""The control plane behind a port: HTTP for requests, one WebSocket for nudges."""
