"""The two ways to a server: the pipes of a process under a guard, and streamable HTTP."""
