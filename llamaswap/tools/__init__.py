"""Commands that read a configuration and say something about it.  Nothing is started."""
