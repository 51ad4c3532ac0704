"""Every route that a client can ask for, and what answers it."""
