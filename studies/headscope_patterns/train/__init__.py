"""Training and cross-validation of pattern classifiers."""
