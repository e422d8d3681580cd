"""What a token of a group counts beside an ordinary one, and what heads look at, against loops."""

from itertools import product

import numpy as np
import pytest
import xarray as xr

from headscope_studies.what_heads_look_at.claims import judge_claims
from headscope_studies.what_heads_look_at.no_op import GROUPS, LATE, MEASURES, ORDINARY, compare_tokens, name_no_ops
from headscope_studies.what_heads_look_at.no_op_figures import answer_table
from headscope_studies.what_heads_look_at.report import answer_no_ops
from headscope_studies.what_heads_look_at.surface import TYPES, choose_head, describe_heads, list_heads

DIMS = ("example", "lens", "layer", "head", "type")


def rows(examples=6, layers=3, heads=2):
    random = np.random.default_rng(0)
    shape = (examples, len(MEASURES), layers, heads, len(TYPES))
    sums, counts = random.random(shape) + 0.1, random.integers(1, 9, (examples, 1, 1, 1, len(TYPES))) + np.zeros(shape)
    sums[0, ..., TYPES.index("period_comma")] = counts[0, ..., TYPES.index("period_comma")] = np.nan
    coords = {"lens": list(MEASURES), "layer": range(layers), "head": range(heads), "type": list(TYPES)}
    names = {"token_types_absolute_rows": (DIMS, sums), "token_types_count_rows": (DIMS, counts)}
    return xr.Dataset(names, coords)


def per_token(data, measure, layer, kind):
    """The mean weight on one token of a type, over the texts that have one, then over heads."""
    where, texts = (list(MEASURES).index(measure), layer), []
    sums, counts = (data[name].values[..., TYPES.index(kind)] for name in data)
    for example in range(len(sums)):
        heads = [sums[example, *where, head] / counts[example, *where, head] for head in (0, 1)]
        if not np.isnan(heads).any():
            texts.append(sum(heads) / 2)
    return sum(texts) / len(texts)


def test_ratios_equal_their_literal_version():
    data = rows()
    result = compare_tokens(data)
    table = {name: result[name].transpose("measure", ..., "group").values for name in result if "ratio" in name}
    for measure, group in product(MEASURES, GROUPS):
        at = (list(MEASURES).index(measure), ..., list(GROUPS).index(group))
        literal = [
            per_token(data, measure, layer, group) / per_token(data, measure, layer, ORDINARY[group])
            for layer in range(3)
        ]
        late = [ratio for depth, ratio in enumerate(literal, 1) if depth / 3 >= LATE]
        assert table["ratio_layer"][at] == pytest.approx(literal)
        assert table["ratio"][at] == pytest.approx(np.prod(literal) ** (1 / 3))
        assert table["ratio_late"][at] == pytest.approx(np.prod(late) ** (1 / len(late)))
        assert table["ratio_low"][at] <= table["ratio"][at] <= table["ratio_high"][at]
    for measure, layer, kind in product(MEASURES, range(3), TYPES):
        size = result["size_layer"].sel(measure=measure, layer=layer, type=kind)
        assert float(size) == pytest.approx(per_token(data, measure, layer, kind))


def network(raw, **others):
    """One network whose ratios of [SEP] are these, with narrow intervals; NaN for other groups."""
    values = np.full((len(MEASURES), len(GROUPS)), np.nan)
    for name, value in {"raw": raw, **others}.items():
        values[list(MEASURES).index(name), list(GROUPS).index("sep")] = value
    variables = {
        f"ratio{end}": (("measure", "group"), values * factor)
        for end, factor in (("", 1), ("_low", 0.99), ("_high", 1.01))
    }
    return xr.Dataset(variables, {"measure": list(MEASURES), "group": list(GROUPS)})


def test_a_no_op_is_attended_to_more_and_counts_less():
    answers = name_no_ops(network(5.0, effective=0.5, norm=2.0, gradient=1.0), "sep")
    assert answers == {"effective": "no-op", "norm": "counts", "gradient": "open"}
    assert name_no_ops(network(0.9, effective=0.5), "sep") == {}


@pytest.mark.parametrize(
    ("ratios", "sentence"),
    [
        ({"effective": 0.5, "norm": 2.0}, "is a no-op by effective (0.5 ×), but not by norm (2 ×). "),
        ({"effective": 0.5, "norm": 0.25}, "is a no-op by effective (0.5 ×) and norm (0.25 ×). "),
        ({"effective": 3.0, "norm": 2.0}, "is not a no-op by effective (3 ×) and norm (2 ×). "),
        ({"effective": 1.0}, "is open by every other measure. "),
    ],
)
def test_the_answer_is_a_sentence(ratios, sentence):
    text = answer_no_ops(network(5.0, **ratios))
    assert text.startswith(
        f"Attention to [SEP] (5 × that to an ordinary token) {sentence}[CLS] is not attended to more"
    )
    assert " Periods and commas are not attended to more" in text


def test_a_token_that_is_not_attended_to_more_is_no_no_op():
    assert answer_no_ops(network(0.9, effective=0.5)).startswith(
        "[SEP] is not attended to more than an ordinary token (0.9 ×). "
    )


@pytest.mark.parametrize("seed", range(3))
def test_tokens_whose_types_are_shuffled_are_no_no_op(seed):
    """What one token gets does not depend on its type, in no layer and by no measure; more for [SEP] is seen."""
    random = np.random.default_rng(seed)
    data = rows(examples=60)
    counts = random.integers(1, 9, (60, 1, 1, 1, len(TYPES))) + np.zeros(data["token_types_absolute_rows"].shape)
    sums = counts * random.gamma(4, 0.25, counts.shape)
    for factor, shown in ((1.0, False), (2.0, True)):
        more = np.where(np.array(TYPES) == "sep", factor, 1.0)
        drawn = data.assign(token_types_absolute_rows=(DIMS, sums * more), token_types_count_rows=(DIMS, counts))
        network = compare_tokens(drawn).expand_dims(task=["shuffled"]).assign(n=("task", [60]))
        judged = judge_claims({"": {"no-op": network}})[""]["no-op"]
        assert ("holds" in {claim.verdict for claim in judged}) is shown


def test_the_table_of_answers_has_every_group():
    table = answer_table(network(5.0, effective=0.5).expand_dims(task=["a model"]))
    assert table.loc[("a model", "[SEP]"), "effective"] == "no-op"


def test_the_best_head_is_chosen_on_other_examples_than_it_is_reported_on():
    values = np.zeros((8, 1, 2, 2))
    values[::2, 0, 1, 0], values[1::2, 0, 1, 0], values[1::2, 0, 0, 1] = 0.9, [0.2, 0.4, 0.2, 0.4], 1.0
    table = xr.DataArray(
        values, dims=("example", "lens", "layer", "head"), coords={"lens": ["raw"], "layer": [0, 1], "head": [0, 1]}
    )
    chosen = choose_head("most", table)
    assert chosen["most_head"].item() == "L1H0"
    assert chosen["most"].item() == pytest.approx(0.3)
    assert choose_head("least", -table, sign=-1)["least"].item() == pytest.approx(0.0)
    unseen = choose_head("most", table * np.nan)  # such as the next token in a causal model
    assert unseen["most_head"].item() == "no head"
    assert np.isnan([unseen[f"most{end}"].item() for end in ("", "_low", "_high")]).all()


def test_heads_are_listed_from_the_largest_on():
    table = xr.DataArray([[0.6, 0.1], [0.9, 0.5]], dims=("layer", "head"), coords={"layer": [0, 1], "head": [0, 1]})
    assert list_heads(table, above=0.5) == ["L1H0", "L0H0"]
    assert list_heads(table, at_most=0.1) == ["L0H1"]
    assert describe_heads(["L1H0", "L0H0", "L2H2"], limit=2) == "3 (L1H0, L0H0, and 1 more)"
    assert describe_heads([]) == "none"
