"""The web: search services, and the safe fetching of pages."""
