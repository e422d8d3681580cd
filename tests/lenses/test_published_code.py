"""Lenses beside the programs of their authors, run once on a tiny BERT; their results are stored here as numbers.

What was run, with the weights and tokens below, in float64 and with no change of what is computed:

- `norm`, `norm:residual=true` and the mixing ratio: gorokoba560/norm-analysis-of-transformer at 5dc8fb3, the model of
  the folder emnlp2021 with `output_norms=True`;
- `alti`: mt-upc/transformer-contributions at 4f89039, `ModelWrapper` and `normalize_contributions(…, "min_sum",
  resultant_norm=…)` as attributions.py calls it. It measures distances with `torch.nn.functional.pairwise_distance`,
  which adds 1e-6 to every difference;
- `value_zeroing`: hmohebbi/ValueZeroing at 57d448d, the loop of demo.py with its own BERT, in transformers 4.30.
"""

import pytest
import torch
import transformers

from headscope.core.lens import view
from headscope.engine.capture import capture
from headscope.engine.load import load
from tests.models import tokenizer

CONFIG = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 12,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
TOKENS = [[2, 7, 5, 11, 7, 3]]
KEEP = ("values", "output", "residual", "blocks")
MIXING_RATIO = [0.181375, 0.242160]
FOUND = {
    "norm": [
        [
            [
                [0.096283, 0.276194, 0.357256, 0.110928, 0.192885, 0.093616],
                [0.295046, 0.119518, 0.269303, 0.125904, 0.116328, 0.209641],
                [0.338183, 0.105019, 0.078417, 0.164217, 0.156658, 0.292023],
                [0.151625, 0.192981, 0.409877, 0.108924, 0.141960, 0.122721],
                [0.201527, 0.148303, 0.412859, 0.106917, 0.115296, 0.145941],
                [0.100121, 0.247418, 0.423496, 0.101430, 0.164079, 0.090588],
            ],
            [
                [0.078718, 0.363198, 0.510143, 0.105416, 0.224993, 0.075742],
                [0.258422, 0.139537, 0.379160, 0.114019, 0.122870, 0.176198],
                [0.278828, 0.129609, 0.131249, 0.144050, 0.165415, 0.230497],
                [0.135153, 0.243137, 0.574835, 0.105240, 0.162503, 0.106513],
                [0.181730, 0.181693, 0.576408, 0.101892, 0.128759, 0.127245],
                [0.084483, 0.325792, 0.601459, 0.098122, 0.193159, 0.075435],
            ],
        ],
        [
            [
                [0.085795, 0.267252, 0.485581, 0.141268, 0.192568, 0.096371],
                [0.213209, 0.150976, 0.423273, 0.131834, 0.129157, 0.166000],
                [0.234081, 0.145753, 0.183521, 0.168037, 0.158812, 0.215624],
                [0.140449, 0.192791, 0.563296, 0.125623, 0.143319, 0.121782],
                [0.172275, 0.168187, 0.538480, 0.123629, 0.130340, 0.137553],
                [0.097048, 0.239262, 0.567856, 0.129521, 0.167825, 0.098072],
            ],
            [
                [0.174256, 0.287269, 0.615582, 0.146891, 0.173427, 0.179458],
                [0.398274, 0.179496, 0.484744, 0.152289, 0.133033, 0.312976],
                [0.482905, 0.157236, 0.178649, 0.192318, 0.156842, 0.439959],
                [0.254997, 0.222030, 0.682891, 0.136409, 0.138825, 0.216984],
                [0.309375, 0.198884, 0.646131, 0.137751, 0.130429, 0.247042],
                [0.182517, 0.262506, 0.716347, 0.133850, 0.152831, 0.173637],
            ],
        ],
    ],
    "norm:residual=true": [
        [
            [
                [3.383308, 0.425216, 0.695133, 0.155144, 0.295047, 0.120598],
                [0.367338, 3.777019, 0.472991, 0.156977, 0.153799, 0.249603],
                [0.546846, 0.188747, 4.196354, 0.269531, 0.276247, 0.452307],
                [0.198464, 0.274603, 0.749110, 3.516728, 0.204053, 0.154444],
                [0.242912, 0.190042, 0.689352, 0.130176, 3.524819, 0.168559],
                [0.126738, 0.358697, 0.772845, 0.134528, 0.237324, 3.363210],
            ],
        ],
        [
            [
                [4.493534, 0.421393, 1.046939, 0.233657, 0.267251, 0.246871],
                [0.527006, 3.321076, 0.875531, 0.233918, 0.193505, 0.435136],
                [0.591209, 0.221747, 2.941931, 0.281672, 0.221396, 0.568150],
                [0.347411, 0.326317, 1.227481, 3.890638, 0.212984, 0.313362],
                [0.410769, 0.280472, 1.133581, 0.213453, 3.653284, 0.345776],
                [0.237262, 0.380543, 1.218900, 0.213194, 0.233660, 4.342693],
            ],
        ],
    ],
    "alti": [
        [
            [
                [0.961476, 0.004091, 0.000000, 0.010980, 0.009117, 0.014336],
                [0.000000, 0.963619, 0.030097, 0.000000, 0.006284, 0.000000],
                [0.000000, 0.004781, 0.988630, 0.001412, 0.005177, 0.000000],
                [0.000000, 0.007287, 0.000000, 0.989860, 0.002853, 0.000000],
                [0.000000, 0.017725, 0.038568, 0.002836, 0.940871, 0.000000],
                [0.014877, 0.007919, 0.000000, 0.016252, 0.018290, 0.942662],
            ],
        ],
        [
            [
                [0.848138, 0.032068, 0.119794, 0.000000, 0.000000, 0.000000],
                [0.000000, 0.922377, 0.000000, 0.030390, 0.037950, 0.009283],
                [0.040546, 0.014151, 0.827525, 0.037874, 0.031970, 0.047934],
                [0.000000, 0.031639, 0.084286, 0.870828, 0.013247, 0.000000],
                [0.018499, 0.028982, 0.000000, 0.023123, 0.905660, 0.023736],
                [0.000000, 0.012378, 0.037656, 0.000000, 0.002568, 0.947397],
            ],
        ],
    ],
    "value_zeroing": [
        [
            [
                [0.021375, 0.258751, 0.560521, 0.029223, 0.111736, 0.018394],
                [0.281570, 0.054820, 0.430575, 0.052194, 0.050576, 0.130265],
                [0.394352, 0.056496, 0.058457, 0.104633, 0.113064, 0.272999],
                [0.053822, 0.114713, 0.712748, 0.028796, 0.057397, 0.032525],
                [0.097903, 0.063576, 0.725544, 0.028300, 0.037761, 0.046915],
                [0.020825, 0.173749, 0.698550, 0.021885, 0.069233, 0.015759],
            ],
        ],
        [
            [
                [0.030563, 0.127099, 0.717705, 0.035506, 0.051517, 0.037610],
                [0.205170, 0.042366, 0.569309, 0.031417, 0.018371, 0.133367],
                [0.386322, 0.054540, 0.120197, 0.063919, 0.039788, 0.335234],
                [0.051292, 0.042269, 0.812812, 0.025402, 0.022104, 0.046121],
                [0.096997, 0.038571, 0.766710, 0.019649, 0.012755, 0.065318],
                [0.029487, 0.083111, 0.805196, 0.022943, 0.029151, 0.030111],
            ],
        ],
    ],
}
"""By layer, head (one where a lens merges them), query and key."""


def fill(bert):
    """Give a model weights by a formula, the same whatever version of torch runs."""
    with torch.no_grad():
        for number, (name, weight) in enumerate(sorted(bert.named_parameters())):
            steps = torch.arange(weight.numel(), dtype=torch.float64).reshape(weight.shape)
            wave = torch.sin(1.7 * (number + 1) + 2.3 * steps + 0.37 * torch.sin(0.11 * steps * steps))
            base = 1.0 if name.endswith("LayerNorm.weight") else 0.0
            size = 0.07 if "query" in name or "key" in name else 0.25
            weight.copy_((base + size * wave).to(weight))
    return bert


@pytest.fixture(scope="module")
def trace():
    bert = fill(transformers.BertModel(transformers.BertConfig(**CONFIG)).eval())
    inputs = {"input_ids": torch.tensor(TOKENS), "attention_mask": torch.ones(1, len(TOKENS[0]), dtype=torch.long)}
    return capture(load(bert, tokenizer=tokenizer()), inputs, keep=KEEP)


@pytest.mark.parametrize("spec", FOUND)
def test_a_lens_equals_the_program_of_its_authors(trace, spec):
    maps = view(trace, spec)
    ours = torch.stack([maps.layer(layer)[0] for layer in trace.layers])
    torch.testing.assert_close(ours, torch.tensor(FOUND[spec]), atol=1e-5, rtol=0)


def test_the_mixing_ratio_equals_the_program_of_its_authors(trace):
    ratio = view(trace, "norm:residual=true").diagnostics["mixing_ratio"][0, :, 0]
    torch.testing.assert_close(ratio, torch.tensor(MIXING_RATIO), atol=1e-5, rtol=0)
