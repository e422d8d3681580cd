"""Labelled maps: sampled, rendered for labelling, read and written."""
