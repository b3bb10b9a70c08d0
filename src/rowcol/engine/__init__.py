"""All compiled code. Each file here stands alone: Numba stamps its cache with one file only."""
