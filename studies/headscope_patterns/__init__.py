"""Labels and training of the classifier of attention patterns; the classifier itself is in headscope."""
