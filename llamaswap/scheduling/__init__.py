"""Who goes next, and what must be unloaded first.  Values in, values out."""
