"""What users and agents may do to hosts and what belongs to them."""
