"""What people may do to stacks."""
