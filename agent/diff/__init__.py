"""Pure differences between desired and observed, one file a noun; no engine, clock or network."""
