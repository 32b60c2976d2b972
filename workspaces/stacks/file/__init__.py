"""The stack file and its variables: from text to checked, plain values. Pure."""
