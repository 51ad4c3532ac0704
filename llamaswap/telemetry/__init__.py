"""Numbers for operators: the metrics of one service, in one registry of its own."""
