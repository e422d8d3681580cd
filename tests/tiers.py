"""Which tests run when: the tiers quick, test and soak of the Makefile."""

from collections.abc import Callable, Container, Iterator, Sequence
from itertools import islice, product
from typing import Any

import pytest

from tests.models import KINDS

COLLECTED = pytest.StashKey[list[pytest.Item]]()
QUICK_FOLDERS = ("tests/core", "tests/laws", "tests/maps", "tests/uncertainty")
NOT_QUICK = ("tests/laws/test_kinds.py", "tests/laws/test_studies.py")  # draw every result, and run every study
QUICK_MODELS = ("bert", "llama")  # an encoder with padding, and a decoder whose heads share keys
GUARDS = {
    "tests/audit/test_cues.py::test_shuffled_labels_seldom_make_a_pair_significant":
        "tests/audit/test_cues.py::test_random_labels_make_no_pair_significant",
    "studies/headscope_studies/argument_cues/tests/test_nulls.py::"
    "test_intervals_over_seeds_and_points_hold_the_truth_often_enough":
        "studies/headscope_studies/argument_cues/tests/test_nulls.py::"
        "test_seeds_of_one_training_are_no_gain_by_another_text",
    "studies/headscope_studies/argument_cues/tests/test_nulls.py::"
    "test_with_shuffled_labels_a_claim_holds_in_less_than_one_family_of_twenty":
        "studies/headscope_studies/argument_cues/tests/test_nulls.py::"
        "test_with_shuffled_labels_nothing_is_better_than_chance_and_no_cue_is_followed",
    "studies/headscope_studies/effective_attention/tests/test_coverage.py::"
    "test_simultaneous_intervals_miss_at_most_so_often":
        "studies/headscope_studies/effective_attention/tests/test_coverage.py::"
        "test_simultaneous_intervals_allow_for_skewed_inputs",
    "studies/headscope_studies/effective_attention/tests/test_coverage.py::"
    "test_margins_of_tied_layers_miss_at_most_one_time_in_twenty":
        "studies/headscope_studies/effective_attention/tests/test_coverage.py::"
        "test_margins_hold_where_layers_are_tied",
    "studies/headscope_studies/effective_attention/tests/test_coverage.py::"
    "test_random_changes_of_patterns_are_shown_at_most_one_time_in_twenty":
        "tests/experiments/test_pattern_shares.py::test_maps_that_are_the_same_do_not_change",
    "studies/headscope_studies/effective_attention/tests/test_nulls.py::"
    "test_shuffled_labels_show_a_change_in_less_than_one_family_of_twenty":
        "studies/headscope_studies/effective_attention/tests/test_nulls.py::"
        "test_shuffled_labels_of_attentions_show_no_change",
    "studies/headscope_studies/effective_attention/tests/test_recomputed.py::"
    "test_the_numbers_of_a_glue_task_are_those_of_plain_loops":
        "studies/headscope_studies/effective_attention/tests/test_recomputed.py::"
        "test_the_numbers_of_gap_are_those_of_plain_loops",
    "studies/headscope_studies/what_heads_look_at/tests/test_study.py::"
    "test_intervals_over_heads_hold_the_truth_often_enough":
        "studies/headscope_studies/what_heads_look_at/tests/test_study.py::"
        "test_heads_of_one_layer_are_judged_by_how_far_others_are_apart",
    "tests/engine/recording/test_zoo.py::test_no_type_is_captured_wrongly_without_a_word":
        "tests/engine/recording/test_zoo.py::test_a_sample_of_types_is_captured_right_or_said_why_not",
    "tests/experiments/test_kill.py::test_a_study_with_a_fine_tuned_model_killed_at_any_write_ends_with_the_same_numbers":
        "tests/experiments/test_kill.py::test_a_study_killed_at_any_write_is_resumed",
    "tests/head_atlas/test_resume.py::test_two_workers_of_ray_give_the_same_bytes":
        "tests/head_atlas/test_resume.py::test_states_as_a_worker_sends_them_give_the_same_bytes",
    "tests/measuring/test_long.py::test_a_text_of_8192_tokens_is_measured_in_less_than_2_gb":
        "tests/laws/test_rows.py::test_no_tensor_of_queries_and_keys_is_made",
    "tests/measuring/test_windows.py::"
    "test_a_run_over_a_file_that_was_killed_resumes_to_the_same_bits_also_with_two_workers":
        "tests/measuring/test_windows.py::test_a_run_that_was_stopped_anywhere_resumes_to_the_same_bits",
    "tests/measuring/test_ray.py::test_a_killed_worker_is_replaced_and_no_batch_is_lost":
        "tests/measuring/test_ray.py::test_two_workers_give_the_result_of_one_process",
    "tests/results/test_fuzz.py::test_thousands_of_damaged_files_end_in_one_sentence":
        "tests/results/test_fuzz.py::test_a_damaged_file_ends_in_one_sentence",
    "tests/test_site.py::test_questions_of_a_newcomer_are_answered_by_three_clicks_or_one_search":
        "tests/test_site.py::test_every_question_of_a_newcomer_names_the_section_that_answers_it",
    "tests/test_site.py::"
    "test_on_a_phone_no_page_is_wider_than_the_screen_and_what_is_wide_scrolls_within_itself":
        "tests/test_site.py::test_tables_pictures_code_and_outputs_scroll_within_themselves",
    "tests/test_site.py::test_the_lines_of_the_gallery_run":
        "tests/test_generated_docs.py::test_generated_figures_and_tables_are_up_to_date",
    "tests/test_site.py::test_the_site_is_built_without_a_warning":
        "tests/test_docs.py::test_links_have_a_target",
    "tests/test_rounding.py::test_numerical_tests_pass_under_other_rounding":
        "tests/laws/test_lenses.py::test_a_lens_equals_its_oracle",
    "tests/test_benchmarks.py::test_the_benchmark_of_long_texts_runs_on_a_tiny_text":
        "tests/laws/test_rows.py::test_maps_from_blocks_are_the_rows_of_whole_maps",
    "tests/test_wheel.py::test_the_wheels_installed_from_an_index_with_all_that_they_need_work":
        "tests/test_wheel.py::test_the_wheels_work_outside_the_clone",
    "tests/test_benchmarks.py::test_the_benchmark_of_attention_flow_runs_on_the_attention_of_a_model":
        "tests/test_benchmarks.py::test_the_benchmark_of_attention_flow_runs_on_a_tiny_graph",
    "tests/test_tutorials.py::test_a_tutorial_runs_in_a_kernel_and_shows_what_is_stored":
        "tests/test_tutorials.py::test_the_code_of_a_tutorial_runs_without_a_warning",
    "tests/viewer/test_size.py::test_1024_heads_of_2048_tokens_never_hold_all_weights":
        "tests/viewer/test_size.py::test_the_maps_of_a_long_text_are_read_one_by_one",
}  # fmt: skip
"""What `make test` runs in place of a test that only `make soak` runs."""


def is_quick(item: pytest.Item) -> bool:
    """Whether `make quick` runs a test: one of its folders, and of no tiny model but its two."""
    if folder_of(item) not in QUICK_FOLDERS or item.nodeid.startswith(NOT_QUICK) or item.get_closest_marker("soak"):
        return False
    kind = item.callspec.params.get("kind") if hasattr(item, "callspec") else None
    return kind not in KINDS or kind in QUICK_MODELS


def folder_of(item: pytest.Item) -> str:
    """Return the folder of a test and the one above, as tests/core."""
    return "/".join(item.nodeid.split("/")[:2])


def spread(*lists: Sequence[Any], where: Callable[..., bool] = lambda *_: True) -> list[Any]:
    """Return all combinations of values for which `where` holds, for `parametrize`; most of them are marked soak.

    `make test` runs about as many as the longest list is long: every value occurs, and those of the shorter lists take
    turns.
    """
    sizes = [len(values) for values in lists]
    places = {
        place: values
        for place in product(*map(range, sizes))
        if where(*(values := [each[index] for each, index in zip(lists, place, strict=True)]))
    }
    kept = set(take_turns(sizes, places))
    for at, index in ((at, index) for at, size in enumerate(sizes) for index in range(size)):
        if all(place[at] != index for place in kept):  # it may not go with those whose turn it was
            kept.update([place for place in places if place[at] == index][:1])
    return [pytest.param(*values, marks=() if place in kept else pytest.mark.soak) for place, values in places.items()]


def take_turns(sizes: Sequence[int], places: Container[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """Yield one of the places for each value of the longest list; where one is not among them, the next turn."""
    longest = max(sizes)
    for turn in range(longest):
        turns = (tuple(turn if size == longest else (turn + more) % size for size in sizes) for more in range(longest))
        yield from islice((place for place in turns if place in places), 1)
