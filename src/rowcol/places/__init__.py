"""Where X may lie: in files, read in parts, or on a cluster."""
