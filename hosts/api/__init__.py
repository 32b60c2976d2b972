"""REST endpoints of hosts, networks and volumes."""
