"""The ledger as one story: rows are joined to entries, and sentences made, when it is read."""
