"""Who did what, when and from where: rows that are written once and never changed."""
