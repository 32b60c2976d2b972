"""What the agent keeps on disk: who it is, its journal and outbox, the last good document."""
