"""The check of a whole tape: its recorded operations composed, forwards and backwards."""
