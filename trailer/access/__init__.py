"""Grants on objects and capabilities on hosts: what people may do beyond what they own."""
