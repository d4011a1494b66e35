"""One compiled model per bucket, all with the same weights, instead of Q serialised models (Khomenko et al. 2016).

A compiler makes a model for one shape. Batches padded to the edges of Q buckets have Q shapes, so Q compilations
serve every epoch.

    python -m lengthwise_recipes.compiled jax --buckets 4 --epochs 3
    python -m lengthwise_recipes.compiled torch --buckets 4 --epochs 3 --data strokes.npz

Shape legend of this folder: B rows (empty ones too), F frames, N symbols of a text, C classes (blank is 0), H hidden.
"""
