"""The version, in the one place that says it."""

__version__ = "1.0.0rc1"
