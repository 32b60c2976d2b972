"""How busy the host, its GPUs and its workspaces are, read without asking the engine."""
