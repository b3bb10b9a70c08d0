"""Mathematics: what was asked (Problem), how we look at it (View), who is next (Sampler), how good it is (certify)."""
