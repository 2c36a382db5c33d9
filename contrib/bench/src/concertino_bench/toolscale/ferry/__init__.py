"""The shipped domain: a ferry company with twenty tools and 55 tasks, written by hand, which needs no model."""
