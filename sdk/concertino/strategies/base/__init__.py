"""What strategies share: the contract of a machine, conversations, tags, members and observations as text."""
