"""What a model's config says about pruned heads."""

from collections.abc import Sequence
from typing import Any

from headscope.core.family import HeadWeights
from headscope.engine.pruning.kept_heads import KeptHeads

PRUNED = "headscope_pruned_heads"
"""The entry that lists the pruned heads; it is saved with the model."""

CUTS = "headscope_cut_layers"
"""What is left of linear layers and of modules' heads, where data flow said what belongs to a head."""

BEFORE = "headscope_heads_before"
"""The entries that were changed so that the library reads the model, with their values before."""


def pruned_heads(config: Any) -> list[str]:
    """Return the names of the heads that a model has lost."""
    return list(getattr(config, PRUNED, None) or [])


def list_pruned(config: Any, removed: Sequence[str]) -> None:
    """Add heads to the list of pruned ones."""
    listed = dict.fromkeys([*pruned_heads(config), *removed])  # a config that is loaded lists them already
    setattr(config, PRUNED, list(listed))


def update_config(config: Any, removed: Sequence[str], heads: Sequence[KeptHeads], facts: HeadWeights) -> None:
    """List the removed heads; where all layers have equally many left and the config can say so, change its counts.

    `from_pretrained` of transformers then reads the model, too.
    """
    list_pruned(config, removed)
    restore_config(config)
    users = {tuple(module.count_users().values()) for module in heads}
    if facts.config is None or len(users) > 1 or not (counts := users.pop()) or len(set(counts)) > 1:
        return
    if config.hidden_size % sum(counts) == 0:  # which Llama's config demands
        names = facts.config
        setattr(config, BEFORE, {name: getattr(config, name, None) for name in names})
        for name, value in zip(names, (sum(counts), len(counts), heads[0].size), strict=True):
            setattr(config, name, value)


def restore_config(config: Any) -> None:
    """Set the counts of heads back to those before any was pruned."""
    before = getattr(config, BEFORE, None)
    if before is not None:
        for name, value in before.items():
            setattr(config, name, value)
        delattr(config, BEFORE)
