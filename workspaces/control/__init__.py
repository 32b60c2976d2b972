"""The agents' side of the server: state documents out, reports in."""
