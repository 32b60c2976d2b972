"""The agent's image as this server hands it out, and the line that brings it to a host."""
