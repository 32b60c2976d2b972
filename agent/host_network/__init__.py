"""Which addresses the machine that this process runs on uses itself."""
