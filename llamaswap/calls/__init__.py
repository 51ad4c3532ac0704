"""What the client asked for: which model, how urgent, streaming or not.  Values only."""
