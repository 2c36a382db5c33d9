"""A model that is being trained on a server: ids in, ids and log-probabilities out, weights that change."""
