"""What a server offers, as members of a pool, and what is left out and why."""
