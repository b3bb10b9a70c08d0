"""Files: matrices, tables, and what is remembered of how a table became numbers."""
