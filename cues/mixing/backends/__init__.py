"""The loops that mix, in numpy and compiled."""
