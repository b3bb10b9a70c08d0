"""Models on disk: a zip of JSON and .npy files, in which nothing is code."""
