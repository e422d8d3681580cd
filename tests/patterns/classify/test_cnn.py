from dataclasses import replace

import pytest
import torch

from headscope.core.errors import InputError
from headscope.patterns import CLASSES
from headscope.patterns.classify.cnn import (
    DEFAULT_SETTINGS,
    PatternNet,
    fuse_batch_norm,
    make_inputs,
    read_cnn,
    read_metadata,
)
from headscope.patterns.classify.normalize import normalize_maps
from headscope_patterns.train.synthetic import make_synthetic_maps
from headscope_patterns.train.training_set import pad_maps

SMALL = replace(DEFAULT_SETTINGS, side=8, widths=(4,) * 8, middle=4)


def test_fusing_batch_normalisation_keeps_the_logits():
    torch.manual_seed(0)
    net = PatternNet(SMALL, batch_norm=True)
    inputs = make_inputs(normalize_maps(*pad_maps(make_synthetic_maps(6))), SMALL.side)
    net(*inputs)  # updates the running means
    assert torch.allclose(fuse_batch_norm(net, SMALL)(*inputs), net.eval()(*inputs), atol=1e-5)


def test_a_missing_or_foreign_file_raises(tmp_path):
    with pytest.raises(InputError, match="There is no classifier of patterns at"):
        read_cnn(tmp_path / "none.safetensors", torch.device("cpu"))
    (tmp_path / "text.safetensors").write_text("hello")
    with pytest.raises(InputError, match="is not a pattern classifier written by headscope"):
        read_cnn(tmp_path / "text.safetensors", torch.device("cpu"))


def test_the_bundled_confusion_matrix_has_a_row_for_each_class():
    assert set(read_metadata()["errors"]["label"]) == set(range(len(CLASSES)))
