"""Figures of evaluated classifiers."""
