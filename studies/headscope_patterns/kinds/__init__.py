"""Kinds of the results of `headscope patterns`."""
