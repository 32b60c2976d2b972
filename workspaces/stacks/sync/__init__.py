"""How a stack follows its repository: a queue in the database, and one step after the other."""
