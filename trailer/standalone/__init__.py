"""Everything in one command: web server, background jobs and an agent on the local engine."""
