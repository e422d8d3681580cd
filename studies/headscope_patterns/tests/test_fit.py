import torch

from headscope_patterns.train.fit import augment
from headscope_patterns.train.synthetic import make_synthetic_maps
from headscope_patterns.train.training_set import pad_maps


def test_augmentation_keeps_the_columns_of_most_weight_and_valid_segments():
    maps = make_synthetic_maps(10, seed=2)
    weights, real, segments = augment(*pad_maps(maps), torch.Generator().manual_seed(0))
    assert not torch.equal(weights[0].abs(), pad_maps(maps)[0][0].abs())
    shortened = real.sum(-1) < torch.tensor([len(item.segments) for item in maps])
    assert shortened.any()
    sinks = weights.sum(1).argmax(-1)
    assert real.gather(1, sinks[:, None]).all()
    assert ((segments == 0) | (segments == 1)).all()
