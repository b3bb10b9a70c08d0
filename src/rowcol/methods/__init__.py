"""Doing: the methods, the one loop that runs them, and what it returns."""
