"""What the results of a study with several models come to: verdicts, their counts in words, ranges of numbers."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import xarray as xr

from headscope.core.prose import count_noun, join_words
from headscope.experiments.claims import (
    CODE,
    HOLDS,
    MOOT,
    Claim,
    JudgedClaim,
    TaskVerdict,
    list_verdict_names,
    name_without,
)
from headscope.experiments.seeds import combine_seeds
from headscope.experiments.template import format_phrases


@dataclass(frozen=True)
class StudyFacts:
    """The numbers of every model as they were measured."""

    measured: Mapping[str, xr.Dataset]

    stem: ClassVar[str]
    """How the names of its result files and pictures begin."""

    claims: ClassVar[Sequence[Claim]]
    contrast: ClassVar[str] = CODE

    @abstractmethod
    def judge(self, measured: Mapping[str, xr.Dataset]) -> dict[str, list[JudgedClaim]]:
        """Return the verdicts on every model, corrected for the number of all of them."""

    @cached_property
    def models(self) -> dict[str, xr.Dataset]:
        """The numbers of every model, seeds combined."""
        return {label: combine_seeds(data) for label, data in self.measured.items()}

    @cached_property
    def names(self) -> dict[str, str]:
        """The name of every model by its label; tasks with fewer seeds have a label of their own."""
        return {label: label.removesuffix(f"-{count}-seeds") for label, count in self.seeds.items()}

    @cached_property
    def judged_all(self) -> dict[str, list[JudgedClaim]]:
        """The verdicts on every model, and what else the study judges."""
        return self.judge(self.measured)

    @property
    def judged(self) -> dict[str, list[JudgedClaim]]:
        """The verdicts on every model."""
        return {label: self.judged_all[label] for label in self.models}

    @property
    def every(self) -> list[JudgedClaim]:
        """All verdicts in one list."""
        return [claim for claims in self.judged_all.values() for claim in claims]

    @property
    def tests(self) -> int:
        """The number of verdicts that intervals are corrected for."""
        return max(claim.tests for claim in self.every)

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds of verdicts, from the claim that holds to the one that does not apply."""
        kinds = list_verdict_names(self.contrast)
        return kinds if any(claim.published for claim in self.claims) else (kinds[0], *kinds[3:])

    @property
    def exact(self) -> tuple[str, str]:
        """The kinds of verdicts on claims that hold when they are measured exactly."""
        return HOLDS, name_without(self.contrast)

    @property
    def pairs(self) -> int:
        """The number of pairs of a model and a task."""
        return sum(data.sizes["task"] for data in self.models.values())

    @property
    def others(self) -> dict[str, list[JudgedClaim]]:
        """What the study judges beside its models, such as time."""
        return {label: claims for label, claims in self.judged_all.items() if label not in self.models}

    @property
    def total(self) -> int:
        """The number of all verdicts, those on claims that do not apply included."""
        return len(self.claims) * self.pairs + sum(
            len(claim.tasks) for claims in self.others.values() for claim in claims
        )

    @property
    def counts(self) -> dict[str, int]:
        """The number of verdicts of each kind."""
        counts = count_kinds(self.every)
        counts[MOOT] += self.total - sum(counts.values())  # claims that apply to no task of a model may be left out
        return {kind: counts[kind] for kind in self.kinds}

    @property
    def seeds(self) -> dict[str, int]:
        """The number of seeds of each task, by model."""
        return {label: data.sizes.get("seed", 1) for label, data in self.measured.items()}

    @property
    def seed_counts(self) -> str:
        """The number of seeds in words, such as 3 seeds; empty where there is one."""
        counts = sorted(set(self.seeds.values()), reverse=True)
        if counts == [1]:
            return ""
        if len(counts) == 1:
            return count_noun(counts[0], "seed")
        labels = {count: [label for label, known in self.seeds.items() if known == count] for count in counts}
        return " or ".join(f"{count_noun(count, 'seed')} ({join_words(labels[count])})" for count in counts)

    @cached_property
    def unstable(self) -> int:
        """How many verdicts differ between seeds, each judged alone."""
        by_seed = []
        for seed in range(max(self.seeds.values())):
            last = {label: min(seed, count - 1) for label, count in self.seeds.items()}  # for seeds that a model lacks
            by_seed.append(self.judge({label: data.isel(seed=last[label]) for label, data in self.measured.items()}))
        return count_changes(*by_seed)

    def cells(self, claim: Claim) -> dict[tuple[str, str], TaskVerdict]:
        """Return the verdicts on one claim by model and task."""
        return {
            (label, task.task): task
            for label, claims in self.judged.items()
            for judged in claims
            if judged.text == claim.text
            for task in judged.tasks
        }

    def verdicts(self, claim: Claim) -> list[str]:
        """Return the verdicts on one claim for the pairs to which it applies."""
        return [task.verdict for task in self.cells(claim).values() if task.verdict != MOOT]

    def count(self, claim: Claim, *kinds: str) -> str:
        """Return for how many pairs a claim has one of these verdicts, such as 3 of 15; pairs it applies to."""
        verdicts = self.verdicts(claim)
        return f"{sum(verdict in kinds for verdict in verdicts)} of {len(verdicts)}"


def count_kinds(judged: Iterable[JudgedClaim]) -> Counter[str]:
    """Return the number of each verdict."""
    return Counter(task.verdict for claim in judged for task in claim.tasks)


def count_changes(*versions: Mapping[str, Iterable[JudgedClaim]]) -> int:
    """Return how many verdicts are not the same in all versions; a claim that is left out does not apply."""
    tables = [_list_verdicts(judged) for judged in versions]
    return sum(len({table.get(key, MOOT) for table in tables}) > 1 for key in set().union(*tables))


def _list_verdicts(judged: Mapping[str, Iterable[JudgedClaim]]) -> dict[tuple[str, str, str], str]:
    """Return every verdict by model, claim and task."""
    claims = [(label, claim) for label, claims in judged.items() for claim in claims]
    return {(label, claim.text, task.task): task.verdict for label, claim in claims for task in claim.tasks}


def rank_claims(facts: StudyFacts, *kinds: str, least: float = 0.0) -> list[tuple[str, int, int]]:
    """Return the claims that have one of these verdicts for more than a share of the pairs to which they apply.

    Each is its text, for how many pairs it has such a verdict, and to how many it applies; most pairs first.
    """
    ranked = []
    for claim in facts.claims:
        verdicts = facts.verdicts(claim)
        count = sum(verdict in kinds for verdict in verdicts)
        if verdicts and count > least * len(verdicts):
            ranked.append((claim.text.rstrip("."), count, len(verdicts)))
    return sorted(ranked, key=lambda row: -row[1])


def list_claims(facts: StudyFacts, *kinds: str, least: float = 0.0) -> list[str]:
    """Return the claims of `rank_claims` as phrases."""
    return format_phrases(rank_claims(facts, *kinds, least=least), "“{}” ({} of {})")
