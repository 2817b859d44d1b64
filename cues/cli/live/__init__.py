"""Commands that play sound while it is made."""
