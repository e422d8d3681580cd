"""How much each token matters for a model's prediction."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from headscope.core.catalog import importance_methods
from headscope.core.errors import DataWarning, InputError
from headscope.core.example import Example
from headscope.core.importance import Importance, Importances
from headscope.core.options import takes_options
from headscope.core.progress import show_progress
from headscope.core.prose import count_noun, join_words
from headscope.core.spec import to_spec
from headscope.core.target import PredictionTarget, parse_target
from headscope.data.reading.read import read_texts
from headscope.data.tokenizing.running_text import split_running_text
from headscope.engine.batch import Inputs, check_max_length, make_batches
from headscope.engine.fingerprint import CapturedModel
from headscope.engine.model import Model, check_model
from headscope.engine.options import ImportancesOptions
from headscope.engine.scorer import open_scorer

Row = dict[str, Any]
"""The results of one example, by field of Importances."""


@takes_options(ImportancesOptions)
def importances(options: ImportancesOptions) -> Importances:
    """Return how much each token of each text matters for a prediction.

    `method` is "blank_out", "input_gradient", "integrated_gradients", or a spec such as "blank_out:replace=unk".
    `target` may also be a function from the model's output to one number for each example. Texts of similar length
    share a batch; blank-out reads some thousand tokens at a time.

    >>> from transformers import BertForSequenceClassification
    >>> untrained = hs.load(BertForSequenceClassification(model.network.config), tokenizer=model.tokenizer)
    >>> hs.importances(untrained, "The cat sat down.", "blank_out", target="class=1")
    Importances(blank_out, target class=1, of 1 example, 7 tokens)
    """
    model = options.model
    check_model(model)
    method_object, aim = importance_methods.make(options.method), parse_target(options.target)
    _check_request(model, options.data, aim, options.batch_size)
    examples = read_texts(options.data)
    longest = check_max_length(model, examples, options.max_length)
    rows: dict[int, Row] = {}
    with torch.inference_mode(False), show_progress(len(examples), quiet=not options.progress) as advance:
        for indices, inputs in _make_batches(model, examples, options.batch_size, longest):
            rows |= dict(zip(indices, _explain_batch(model, inputs, method_object, aim, longest), strict=True))
            advance(len(indices))
    source = CapturedModel(model, model.network.modules(), target=aim.spec)
    result = _collect(examples, [rows[index] for index in range(len(examples))], method_object, aim.spec, source)
    _warn_about_nan(result)
    return result


def _check_request(model: Model, data: Any, target: PredictionTarget, batch_size: int) -> None:
    if target.kind == "loss":
        raise InputError(
            "target='loss' is the loss of a whole task, but importances explain one prediction. Give 'label' or "
            "'mask:word=WORD', or see the gradient of the loss: hs.capture(model, text, target='loss')."
        )
    class_name = type(model.network).__name__
    if class_name.endswith("ForMultipleChoice"):
        raise InputError(
            f"{class_name} compares several choices, but importances explain what a model says of one text. What its "
            "heads attend to shows hs.capture(model, text, choice); how much they matter, hs.head_importance."
        )
    if isinstance(data, Mapping) or model.network.main_input_name != "input_ids":
        raise InputError("Importances are of the tokens of texts. Give texts to a model that reads texts.")
    if batch_size < 1:
        raise InputError(f"batch_size must be at least 1, but got {batch_size}.")


def _collect(
    examples: Sequence[Example], rows: Sequence[Row], method: Importance, target: str, source: CapturedModel
) -> Importances:
    fields = ("tokens", "pieces", "scores", "special", "words", "answers")
    return Importances(
        examples=tuple(examples),
        **{name: tuple(row[name] for row in rows) for name in fields},
        method=to_spec(method),
        target=target,
        score=np.array([row["score"] for row in rows]),
        signed=method.signed,
        quantity=method.quantity,
        diagnostics={name: np.array([row["more"][name] for row in rows]) for name in rows[0]["more"]},
        source=source,
    )


def _make_batches(
    model: Model, examples: Sequence[Example], size: int, max_length: int | None
) -> Iterator[tuple[list[int], Inputs]]:
    """Yield batches of texts of similar length, longest first, with the index of each text."""
    (all_inputs,) = make_batches(model, examples, len(examples), max_length=max_length)  # warns of truncated texts once
    assert all_inputs.source is not None
    lengths = all_inputs.source.counts.tolist()
    order = sorted(range(len(examples)), key=lambda index: (-lengths[index], index))
    for start in range(0, len(order), size):
        indices = order[start : start + size]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            (inputs,) = make_batches(model, [examples[index] for index in indices], size, max_length=max_length)
        yield indices, inputs


def _explain_batch(
    model: Model, inputs: Inputs, method: Importance, target: PredictionTarget, max_length: int | None
) -> list[Row]:
    tokens = inputs.source
    assert tokens is not None
    with open_scorer(model, inputs, target) as scorer:
        result = method(scorer)
    scores, more = result if isinstance(result, tuple) else (result, {})
    _check_scores(method, scores, scorer.ids)
    real = tokens.real.cpu()
    pair = not model.network.config.is_encoder_decoder
    return [
        {
            "tokens": tuple(tokens.text[row]),
            "pieces": split_running_text(model.tokenizer, example, tokens.text[row], max_length, use_pair=pair),
            "scores": scores[row].double().cpu().numpy()[real[row].numpy()],
            "special": tokens.special[row].cpu()[real[row]].numpy(),
            "words": tokens.word[row].cpu()[real[row]].numpy(),
            "answers": scorer.readout.names[row],
            "score": float(scorer.scores[row]),
            "more": {name: float(table[row]) for name, table in more.items()},
        }
        for row, example in enumerate(inputs.examples)
    ]


def _check_scores(method: Importance, scores: Any, ids: Tensor) -> None:
    if not isinstance(scores, torch.Tensor) or scores.shape != ids.shape:
        shape = list(scores.shape) if isinstance(scores, torch.Tensor) else type(scores).__name__
        raise InputError(
            f"The method '{to_spec(method)}' must return one score for each token, {list(ids.shape)}, but gave {shape}."
        )


def _warn_about_nan(result: Importances) -> None:
    """Warn of examples whose target or ordinary tokens have scores that are not finite."""
    ordinary = [scores[~special] for scores, special in zip(result.scores, result.special, strict=True)]
    counts = [int((~np.isfinite(scores)).sum()) for scores in ordinary]
    examples = zip(result.examples, counts, result.score, strict=True)
    names = [f"'{example.id}'" for example, count, score in examples if count or not np.isfinite(score)]
    if names:
        warnings.warn(
            f"Scores of {len(names)} of {count_noun(len(result), 'example')} ({join_words(names, limit=8)}) are not "
            f"finite: {sum(counts)} of {count_noun(sum(map(len, ordinary)), 'ordinary token')}, and "
            f"{int((~np.isfinite(result.score)).sum())} of {count_noun(len(result), 'prediction')}. Check the model's "
            "output for these texts, or load it in a wider dtype.",
            DataWarning,
            stacklevel=4,
        )
