"""How rows of a table say what was done to them."""
