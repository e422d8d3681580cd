"""Every model type of the installed transformers, built tiny, and what headscope does with it."""
