"""All that can be known to go wrong, said before hours of work are spent."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from headscope.core.errors import InputError
from headscope.core.example import sample_examples
from headscope.engine.load import load
from headscope.engine.model import Model
from headscope.studies.effective_attention.one_task import Plan
from headscope.training.find_task import find_task, find_task_of_head

SHAPE = {"model_type": "of type", "num_hidden_layers": "layers", "num_attention_heads": "heads in a layer"}


def check(plans: Sequence[Plan], base: Model, out: Path) -> None:
    """Labels, tuned models and the example of every task, and that its folder holds steps of no other study."""
    _check_example(plans)
    for plan in plans:
        plan.steps(out).compare(plan.facts(base))
        if plan.tuned is None:
            learned = sample_examples(plan.task.train, plan.tuning.get("limit"), plan.look.seed)
            found, _ = find_task("auto", learned)
            found.check(plan.studied, plan.task.name)
        else:
            _check_tuned(plan, plan.tuned, base)


def _check_example(plans: Sequence[Plan]) -> None:
    """One task that has it is enough: only one map is shown."""
    wanted = plans[0].example
    if wanted is None or any(plan.shows_wanted for plan in plans):
        return
    for plan in plans:
        if any(each.id == wanted for each in plan.task.train):
            raise InputError(
                f"The input '{wanted}' is among those that {plan.task.name} is learned from, and only others are "
                f"shown, such as '{plan.task.dev[0].id}'."
            )
    known = [each.id for plan in plans for each in plan.task.dev]
    near = get_close_matches(wanted, known, n=1)
    guess = f" Did you mean '{near[0]}'?" if near else ""
    some = ", ".join(f"'{each}'" for each in known[:5])
    raise InputError(
        f"No input is called '{wanted}', so it cannot be shown.{guess} There are {len(known):,}, such as {some}."
    )


def _check_tuned(plan: Plan, folder: Path, base: Model) -> None:
    tuned = load(folder, device="cpu")
    ours, theirs = base.network.config, tuned.network.config
    for name, word in SHAPE.items():
        one, other = (getattr(each, name, None) for each in (theirs, ours))
        if one != other:
            has = (
                (f"is {word} '{one}'", f"is '{other}'")
                if name == "model_type"
                else (f"has {one} {word}", f"has {other}")
            )
            raise InputError(
                f"The tuned model {folder} {has[0]}, but the model it is compared with, {base.spec}, {has[1]}. Give as "
                "model the one that it was tuned from."
            )
    find_task_of_head("auto", tuned.network, plan.studied).check(plan.studied, plan.task.name)
