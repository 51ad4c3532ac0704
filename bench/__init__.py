"""Measures the daemon side by side with other proxies, and shows how it behaves: `python -m bench`."""
