"""What the page docs/which_lens.md says of the committed results, and how runs are joined."""

from argparse import Namespace

import pytest

import headscope as hs
from headscope.core.provenance import read_provenance, stamp
from headscope_studies.which_lens.claims import HEADS, HIDDEN, LAYERS, SCORE
from headscope_studies.which_lens.measure import CUTS, EDGES
from headscope_studies.which_lens.pages import page
from headscope_studies.which_lens.pages.facts import read_facts
from headscope_studies.which_lens.runs import which_lens
from tests.study_data import found
from tests.study_pages import check_stamps, count_words


@pytest.fixture(scope="module")
def facts():
    return read_facts()


def rank(data, lenses, judge, effect):
    """Lenses by their agreement with the effects of edges, the best first."""
    values = data["agreement"].sel(judge=judge, effect=effect)
    return sorted(lenses, key=lambda lens: -float(values.sel(lens=lens)))


def test_what_the_page_says_without_a_number_is_so_for_every_model_and_task(facts):
    edges = [lens for lens in EDGES if lens not in page.ONE_ROW]
    for _, data in facts.by_task:
        assert rank(data, edges, HEADS, HIDDEN)[0] == "norm"
        assert rank(data, edges, HEADS, SCORE)[0] == "gradient"
        assert {*rank(data, CUTS, LAYERS, HIDDEN)[:2]} == {"norm", "value zeroing"}
    for _, data in facts.long:
        first, second = rank(data, ["raw", "effective"], HEADS, HIDDEN)
        assert (first, second) == ("raw", "effective")


def test_of_lenses_relevance_and_rollout_over_alti_name_the_tokens_that_take_most(facts):
    means = {
        str(lens): facts.average("removed", facts.learned, lens=str(lens))
        for lens in facts.by_task[0][1]["lens"].values
        if facts.values("removed", lens=str(lens))
    }
    order = sorted(means, key=lambda lens: -means[lens])
    assert {*order[:3]} == {"blank-out", "relevance", "rollout, alti"}
    assert order[-1] == "random"


def test_the_page_is_short_and_its_first_screen_has_question_answer_grid_and_numbers(facts):
    text = page.page(facts, "norms 2").decode()
    assert "nan" not in text
    assert count_words(text) < 775
    first, _, _ = text.partition("## Edges")
    assert (
        first.index("what a model does?") < first.index("**For the hidden state, norms.**") < first.index("![Verdicts")
    )
    assert "**Cost**, in plain forward passes: norms 2." in first
    assert all(f"| {name} | {facts.sizes[name]} |" in first for name, _ in facts.by_task)


def test_the_first_screen_says_on_how_many_pairs_a_difference_is_shown(facts):
    assert facts.count_shown("norm", "raw", "agreement", judge=HEADS, effect=HIDDEN) == "6 of 7"
    assert facts.count_shown("relevance", "rollout", "removed") == "2 of 6"
    rows = [line for line in page.page(facts).decode().splitlines() if line.startswith("| all-MiniLM-L6-v2, RTE |")]
    assert len(rows) == 1
    assert rows[0].endswith("| – | – | – |")


def test_runs_are_joined_into_stamped_files_by_their_number_of_seeds(tmp_path):
    one = found("which-lens")["numbers"]
    facts = {name: value for name, value in read_provenance(one).items() if name != "seed"}
    again = one.assign_coords(task=["other"])
    for name, data in {"first": one, "second": again}.items():
        seeds = data.expand_dims(seed=[0, 1], axis=1) if name == "second" else data
        hs.save(stamp(seeds, **facts), tmp_path / "found" / f"tiny.{name}.nc", overwrite=True)
    which_lens.join(Namespace(folder=tmp_path / "found", stored=None, out=tmp_path / "joined"))
    check_stamps(tmp_path / "joined", {"which_lens_tiny.nc", "which_lens_tiny-1-seeds.nc"})
    joined = read_facts(tmp_path / "joined")
    assert [name for name, _ in joined.by_task] == ["tiny, " + str(one["task"].item()), "tiny, other"]
    which_lens.join(Namespace(folder=tmp_path / "found", stored=tmp_path / "joined", out=tmp_path / "again"))
    check_stamps(tmp_path / "again", {"which_lens_tiny.nc", "which_lens_tiny-1-seeds.nc"})
