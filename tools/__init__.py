"""What dev.py needs before anything is installed: the standard library only."""
