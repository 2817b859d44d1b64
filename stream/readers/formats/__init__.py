"""The wire formats, one file each, and what they share."""
