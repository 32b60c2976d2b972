"""Long work, owned per object and outside the cycle: pulls and builds with their output."""
