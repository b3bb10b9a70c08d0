"""The paper, run: each of its settings measured over many seeds, beside what its theorems say."""
