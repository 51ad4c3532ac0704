"""The scheduler in virtual time: what a trace of requests would have met under these settings."""
