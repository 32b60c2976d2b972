"""The Trailer server: settings, shared kernel and composition root."""
