"""REST endpoints of sign-in, tokens and users."""
