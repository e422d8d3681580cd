"""Lenses, statistics, figures and edits that a notebook or a script defines, without a package or an entry point."""

import re
from dataclasses import dataclass

import pytest
import torch

import headscope as hs
from headscope.core.catalog import catalogs, lenses, statistics
from headscope.core.spec import entry_name, to_spec
from tests.models import text, tiny


@dataclass(frozen=True)
class SquaredRows(hs.Lens):
    """Attention to a power."""

    power: float = 2.0
    quantity = "squared weight"

    def __call__(self, trace):
        return hs.make_maps(trace, [layer**self.power for layer in trace.attention], self)


class MeanHead(hs.Lens):
    """The mean over heads: one map per layer, and no parameters, so that it need not be a dataclass."""

    def __call__(self, trace):
        return hs.make_maps(trace, [layer.mean(1, keepdim=True) for layer in trace.attention], self, merged=True)


@dataclass(frozen=True)
class LargestWeight(hs.PerExample):
    """The largest weight of a map."""

    times: float = 1.0

    def values(self, batch):
        return {"largest_weight": batch.focus.weights.amax((-2, -1)) * self.times}


def uniform(layers=1, heads=2):
    return hs.Trace.of([torch.full((1, heads, 4, 4), 0.25)] * layers, list("abcd"))


def measure(**options):
    return hs.measure(tiny("bert"), [text(9), text(4, seed=1)], progress=False, **options)


@pytest.mark.parametrize("folder", catalogs)
def test_the_name_of_a_built_in_class_is_that_of_its_file(folder):
    for name in catalogs[folder].names():
        assert entry_name(catalogs[folder].find(name)) == name


@pytest.mark.parametrize("lens", [SquaredRows, SquaredRows(), "squared_rows", "squared-rows:power=2"])
def test_a_lens_of_this_session_is_an_object_a_class_or_a_name(lens):
    maps = hs.view(uniform(), lens)
    assert maps.lens == "squared_rows"
    assert maps.weights.unique().tolist() == [1 / 16]
    assert maps.dataset()["quantity"].item() == "squared weight"
    assert lenses.defined()["squared_rows"] is SquaredRows


def test_a_whole_number_and_a_float_have_one_spec():
    assert to_spec(SquaredRows(3)) == to_spec(SquaredRows(3.0)) == to_spec(lenses.make("squared_rows:power=3"))


def test_a_class_that_is_defined_again_replaces_the_older_one(monkeypatch):
    def define(number):
        @dataclass(frozen=True)
        class DefinedTwice(hs.Lens):
            """A lens."""

            def __call__(self, trace):
                return hs.make_maps(trace, [layer * number for layer in trace.attention], self)

        monkeypatch.setitem(globals(), "DefinedTwice", DefinedTwice)
        return DefinedTwice

    old, new = define(2), define(4)
    assert hs.view(uniform(), "defined_twice").weights.unique().tolist() == [1.0]
    assert hs.view(uniform(), new()).weights.unique().tolist() == [1.0]
    assert hs.view(uniform(), old()).weights.unique().tolist() == [0.5]  # an object keeps its class


def test_own_lens_and_statistic_are_measured_drawn_and_reported(tmp_path):
    data = measure(lens=["raw", SquaredRows(3.0)], statistics=[LargestWeight(), "entropy"])
    assert data["lens"].values.tolist() == ["raw", "squared_rows:power=3.0"]
    raw, cubed = data["largest_weight"].values
    assert ((cubed < raw) & (data["largest_weight_n"][0] == 2).values).all()
    assert "squared_rows" in " ".join(_texts(hs.draw(data, "heads:variable=largest_weight")))
    page = hs.report(data, tmp_path / "report").read_text()
    assert "The largest weight of a map." in page
    assert "squared_rows:power=3.0" in page


def test_an_own_statistic_is_resumed_and_merged_by_its_name(tmp_path):
    whole = measure(statistics=[LargestWeight(2.0)])
    for part in (1, 2):
        measure(statistics=[LargestWeight(2.0)], out=tmp_path / f"{part}.state", shard=f"{part}/2")
    merged = hs.merge(tmp_path / "1.state", tmp_path / "2.state")["largest_weight"]
    assert merged.values == pytest.approx(whole["largest_weight"].values)


def test_a_run_with_an_own_lens_is_not_resumed_after_its_code_changed(tmp_path):
    def define(number):
        class Scaled(hs.Lens):
            """Attention times a number."""

            needs = frozenset({"attention", "values"})
            factor = number

            def __call__(self, trace):
                return hs.make_maps(trace, [layer * self.factor for layer in trace.attention], self)

        return Scaled()

    options = {"statistics": ["peak"], "out": tmp_path / "a.state"}
    measure(lens=define(1), **options)
    measure(lens=define(1), resume=True, **options)
    with pytest.raises(hs.InputError, match=r"code\.scaled changed since it was started"):
        measure(lens=define(2), resume=True, **options)


def test_by_default_an_own_lens_and_statistic_read_all_layers():
    @dataclass(frozen=True)
    class LaterLayers(hs.PerExample):
        """How many layers follow."""

        def values(self, batch):
            layers, heads = len(batch.focus.layers), len(batch.focus.heads)
            count = torch.arange(layers).flip(0)[None, :, None].double()
            return {"later_layers": count.expand(len(batch.examples), layers, heads)}

    assert measure(statistics=[LaterLayers()])["later_layers"].values[0, 0, :, 0].tolist() == [1, 0]


def test_a_lens_with_one_map_per_layer_works_to_the_end(tmp_path):
    trace = hs.capture(tiny("bert"), text(9))
    maps = hs.view(trace, MeanHead)
    assert maps.lens == "mean_head"
    assert maps.layer(0).shape[1] == 1
    loaded = hs.open_result(hs.save(maps.dataset(), tmp_path / "maps.nc"))
    for data in (maps, loaded):
        for figure in ("matrix:layer=1", "head_grid", "arcs"):
            texts = _texts(hs.draw(data, figure))
            assert "mean_head" in " ".join(texts)
            assert not [label for label in texts if "H0" in label], figure
    assert hs.report(loaded, tmp_path / "maps").exists()
    measured = measure(lens=["raw", MeanHead()], statistics=["entropy", "peak"])
    saved = hs.open_result(hs.save(measured, tmp_path / "measured.nc"))
    assert saved["entropy"].sel(lens="mean_head", head=0).notnull().all()
    assert (saved["entropy_n"].sel(lens="mean_head").sum("head") == 2).all()
    assert hs.report(saved, tmp_path / "measured").exists()
    labels = _texts(hs.draw(saved, "scatter:x=entropy,y=peak,lens=mean_head"))
    assert "L1" in labels
    assert not [label for label in labels if "H0" in label]
    sentence = "'mean_head' has one map per layer, 'raw' one for each head"
    with pytest.raises(hs.InputError, match=sentence):
        hs.draw(saved, "scatter:x=entropy,lens=raw,against=mean_head")
    with pytest.raises(hs.InputError, match=sentence):
        hs.compare(saved.sel(lens="raw"), saved.sel(lens="mean_head"), paired=False)


def test_maps_of_heads_and_of_layers_are_not_drawn_together():
    trace = uniform()
    with pytest.raises(hs.InputError, match="'mean_head' has one map per layer, 'raw' one for each head"):
        hs.draw([hs.view(trace, "raw"), hs.view(trace, MeanHead)], "compare")


class Raw(hs.Lens):
    """The name of a built-in lens."""

    def __call__(self, trace):
        return hs.make_maps(trace, trace.attention, self)


class WithInit(hs.Lens):
    """Parameters that are not known."""

    def __init__(self, power):
        self.power = power

    def __call__(self, trace):
        return hs.make_maps(trace, trace.attention, self)


def returns(value, *, merged=False):
    class Returning(hs.Lens):
        """A lens that is wrong."""

        def __call__(self, trace):
            return hs.make_maps(trace, value, self, merged=merged) if isinstance(value, list) else value

    return Returning()


@pytest.mark.parametrize(
    ("lens", "sentence"),
    [
        (Raw, "The class Raw of the module .* has the name of another lens, 'raw'.* Rename the class"),
        (WithInit(2), "The class WithInit has an __init__ of its own.* Make it a dataclass"),
        (returns(torch.ones(1)), r"The lens 'returning' must return Maps, but returned a Tensor. Return hs.make_maps"),
        (returns([]), "'returning' made maps of 0 layers, but the trace has 1. Return one tensor for each layer"),
        (returns([torch.ones(1, 3, 4, 4)]), r"made a map of shape \[1, 3, 4, 4\], but \[1, 2, 4, 4\] is expected"),
        (returns([torch.ones(1, 1, 4, 4)]), r"Give merged=True for one map per layer"),
        (
            "completely_unknown",
            "A lens of your own is known once its class is defined.* entry point 'headscope.lenses'",
        ),
    ],
)
def test_a_lens_that_cannot_be_used_is_an_error(lens, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        hs.view(uniform(), lens)


@pytest.mark.parametrize("lens", [3, LargestWeight(), LargestWeight])
def test_what_is_no_lens_is_an_error(lens):
    sentence = f"The lens must be a name, a spec .*, or .* from hs.Lens, but got {re.escape(repr(lens))}"
    with pytest.raises(hs.InputError, match=sentence):
        lenses.make(lens)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            torch.ones(2),
            r"'wrong_values' must return tensors by name, but returned a Tensor. Return {'wrong_values': t",
        ),
        ({"wrong_values": 3.0}, "but returned a float"),
        (
            {"wrong_values": torch.ones(2)},
            r"'wrong_values' of shape \[2\], but \[2, 2, 4\] is expected: batch, layer, h",
        ),
    ],
)
def test_values_of_another_shape_are_an_error(values, sentence):
    class WrongValues(hs.PerExample):
        """A statistic that is wrong."""

        def values(self, batch):
            return values

    with pytest.raises(hs.InputError, match=sentence):
        measure(statistics=[WrongValues()])


def test_two_statistics_with_one_name_are_an_error_at_the_first_batch():
    batches = []

    class OtherPeak(hs.PerExample):
        """A statistic whose result has the name of another's."""

        def values(self, batch):
            batches.append(batch)
            return {"largest_weight": batch.focus.weights.amax((-2, -1))}

    sentence = "'largest_weight' and 'other_peak' both give a result that is called 'largest_weight'"
    with pytest.raises(hs.InputError, match=sentence):
        measure(statistics=[LargestWeight(), OtherPeak()], lens="raw", batch_size=1)
    assert len(batches) == 1


@pytest.mark.parametrize(
    "options", [{"lens": SquaredRows()}, {"statistics": [LargestWeight()]}], ids=lambda part: next(iter(part))
)
def test_ray_asks_for_an_entry_point(options):
    (folder,) = {"lens": "lenses", "statistics": "statistics"}.get(next(iter(options))).split()
    with pytest.raises(
        hs.InputError, match=f"The workers cannot import .* entry point 'headscope.{folder}', or measure"
    ):
        hs.measure(hs.load(), ["It rained."], engine="ray", **{"statistics": ["entropy"], **options})


def test_an_own_edit_changes_a_model_by_its_name():
    @dataclass(frozen=True)
    class Silenced(hs.Edit):
        """Heads that write nothing."""

        def __call__(self, heads):
            return torch.zeros_like(heads.context)

    model = tiny("bert")
    tokens = torch.arange(5, 10)[None]
    with hs.edited(model, "silenced") as edited, torch.no_grad():
        silent = edited.network(tokens)[0]
    assert not torch.equal(silent, model.network(tokens)[0])


def test_an_own_figure_is_drawn():
    @dataclass(frozen=True)
    class RowSums(hs.Figure):
        """The sum of each row."""

        def __call__(self, data, target):
            sums = data["weights"].isel(lens=0, layer=0, head=0).sum("key")
            target.open_axes(3.0, 2.0).plot(sums)

    assert len(hs.draw(hs.view(uniform(), "raw"), RowSums).axes[0].lines) == 1


def test_what_is_defined_here_is_listed_but_not_held_to_be_installed():
    assert hs.list("lenses")["squared_rows"] is SquaredRows
    assert re.search(
        r"^largest_weight +The largest weight of a map\. \[times=1\.0\]$", repr(hs.list("statistics")), re.MULTILINE
    )
    assert "<td style='text-align: left'>Attention to a power.</td>" in hs.list("lenses")._repr_html_()
    assert "squared_rows" not in lenses.names()
    assert not statistics.is_installed(LargestWeight())
    assert statistics.is_installed(statistics.make("entropy"))


def test_built_in_classes_are_imported_from_their_catalog():
    from headscope.edits import EffectiveAttention
    from headscope.figures import HeadGrid
    from headscope.lenses import Effective
    from headscope.statistics import Entropy

    entries = {
        "lenses": Effective("paper"),
        "statistics": Entropy(),
        "figures": HeadGrid(),
        "edits": EffectiveAttention(),
    }
    for folder, entry in entries.items():
        assert catalogs[folder].make(to_spec(entry)) == entry
        assert type(entry).__name__ in dir(__import__(f"headscope.{folder}", fromlist=["_"]))


def test_a_misspelt_class_is_an_import_error_with_the_nearest_name():
    import headscope.lenses

    with pytest.raises(AttributeError, match="has no attribute 'Efective'. Did you mean 'Effective'?"):
        headscope.lenses.Efective  # noqa: B018  (reading it is the test)
    with pytest.raises(ImportError):
        from headscope.lenses import Efective  # noqa: F401


def _texts(figure):
    return [artist.get_text() for artist in figure.findobj(lambda artist: hasattr(artist, "get_text"))]
