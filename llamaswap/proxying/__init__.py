"""What of proxying is llama-swap's: which head an upstream sees, and which a client gets back."""
