"""Samples of hosts, GPUs and workspaces: written, gathered into coarser rows, read as series."""
