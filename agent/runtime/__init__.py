"""The engine behind a port: `docker` is the real one, `fake` the one in memory."""
