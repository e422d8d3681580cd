"""Every verb of the façade that returns a Dataset stamps what kind of result it is."""

import inspect

import pytest
import xarray as xr

import headscope as hs
from headscope.core.document import Document
from headscope.core.kind import find_kind
from headscope.core.provenance import read_provenance
from headscope.core.spec import entry_name
from tests.figures.data import head_distances, measured, studied
from tests.heads import headed
from tests.models import text, tiny
from tests.probes.data import make_tree
from tests.training.data import choosing, labeled

TEXTS = [text(6, 0), text(7, 1), text(8, 2)]
TREES = [make_tree(seed, document=f"d{seed // 4}") for seed in range(16)]
QUIET = {"progress": False}


def classifier():
    return headed("bert", "classification")


def merge(folder):
    hs.measure(tiny("bert"), TEXTS, statistics=["entropy"], out=folder / "part.state", **QUIET)
    return hs.merge(folder / "part.state")


def reopen(folder):
    return hs.open_result(hs.save(hs.cues(choosing(6), min_count=1), folder / "cues.nc"))


CALLS = {
    "ablate": lambda _: hs.ablate(classifier(), labeled(4), sets=["L0H0"], **QUIET),
    "atlas": lambda folder: hs.atlas(tiny("bert"), TEXTS, statistics=["entropy"], out=folder / "atlas", **QUIET),
    "average_heads": lambda _: hs.average_heads(tiny("bert"), TEXTS),
    "cluster": lambda _: hs.cluster(head_distances(), permutations=9),
    "compare": lambda _: hs.compare(measured(), measured(seed=1), variable="entropy"),
    "cues": lambda _: hs.cues(choosing(6), min_count=1),
    "faithfulness": lambda _: hs.faithfulness(tiny("bert"), TEXTS, lenses=["raw"], rows=1, **QUIET),
    "head_importance": lambda _: hs.head_importance(classifier(), labeled(4), **QUIET),
    "identifiability": lambda _: hs.identifiability(hs.capture(tiny("bert"), TEXTS[0]), 0, 0, 1),
    "measure": lambda _: hs.measure(tiny("bert"), TEXTS, statistics=["entropy"], **QUIET),
    "merge": merge,
    "open_result": reopen,
    "probe": lambda _: hs.probe(tiny("bert"), TREES, "dependency:min_count=1", lens="raw", **QUIET),
    "pruning_curve": lambda _: hs.pruning_curve(classifier(), labeled(4), by="random", **QUIET),
    "score": lambda _: hs.score(classifier(), labeled(4), **QUIET),
}


def test_every_verb_that_returns_a_dataset_is_called_here():
    verbs = {name: getattr(hs, name) for name in hs.__all__ if inspect.isfunction(getattr(hs, name))}
    returned = {name: str(inspect.signature(verb).return_annotation) for name, verb in verbs.items()}
    assert {name for name, annotation in returned.items() if "Dataset" in annotation} == set(CALLS)


@pytest.mark.parametrize("verb", CALLS)
def test_a_verb_stamps_the_kind_of_its_result(verb, tmp_path):
    result = CALLS[verb](tmp_path)
    assert isinstance(result, xr.Dataset)
    assert read_provenance(result)["kind"] == entry_name(type(find_kind(result)))


def test_a_study_stamps_its_main_result_and_the_file_of_it(tmp_path):
    class CopyNumbers(hs.Study):
        def run(self, model, out, **options):
            return {"numbers": studied().drop_attrs()}

        def document(self, results):
            return Document("Copied", f"{len(results)} result.", [])

    result = hs.study(CopyNumbers, tiny("bert"), out=tmp_path, **QUIET)
    saved = hs.open_result(tmp_path / "copy_numbers.nc")
    for data in (result.data, saved):
        assert read_provenance(data)["kind"] == entry_name(type(find_kind(data))) == "study"
        assert find_kind(data).lead(data).startswith("Results of the study `copy_numbers` on 2 tasks (RTE and MRPC)")
