"""The members of a pool that a server becomes: a tool for each of its tools, or one agent."""
