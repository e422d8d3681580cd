"""How attention passes from layer to layer: the graph of layers and residual connections, rollout, maximum flow."""
