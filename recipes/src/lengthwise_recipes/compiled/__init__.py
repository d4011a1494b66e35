"""One compiled model per bucket, with shared weights: in place of the Q serialised models of Khomenko et al. 2016.

A compiler makes a model for one shape. Padded to the edges of Q buckets, batches have Q shapes, and Q compilations
serve every epoch; all of them take the same weights.

    python -m lengthwise_recipes.compiled jax --buckets 4 --epochs 3
    python -m lengthwise_recipes.compiled torch --buckets 4 --epochs 3 --data strokes.npz

Shape legend of this folder: B rows (filled ones too), F frames, N symbols of a text, C classes (blank is 0), H hidden.
"""
