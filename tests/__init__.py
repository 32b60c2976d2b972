"""Trailer's tests; the folders mirror the product's."""
