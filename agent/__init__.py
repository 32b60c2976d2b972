"""The Trailer agent: pulls a host's desired state, makes the engine match, reports back."""
