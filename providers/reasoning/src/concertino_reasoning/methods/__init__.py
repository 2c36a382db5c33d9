"""Methods: how one or several requests to models become a solution. An agent is a method with its parameters.

Every method takes what it has when budget or time is over, and says so in the notes; with no solution at all it
ends with the cause of its first failure.

Invariant: the number of requests has a bound that each method documents.
"""
