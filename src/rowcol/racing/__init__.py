"""Races: seconds to a verified error, rowcol and its rivals in turns."""
