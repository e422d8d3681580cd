"""Fit a probe to the attention of a model: choose or train on some documents, report on others."""

import random
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from typing import Any

import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from headscope.core.catalog import lenses, probes
from headscope.core.checks import check_seed
from headscope.core.edit import Edit
from headscope.core.errors import DataWarning, InputError
from headscope.core.example import Example, sample_examples
from headscope.core.lens import Lens, view
from headscope.core.maps import Maps
from headscope.core.options import takes_options
from headscope.core.probe import Probe
from headscope.core.progress import Advance, show_progress
from headscope.core.provenance import stamp
from headscope.core.spec import to_spec
from headscope.core.trace.nan_attention import warn_about_nan
from headscope.data.reading.read import read
from headscope.data.tagging.tag import tag_examples
from headscope.engine.batch import make_batches
from headscope.engine.capture import capture_batch, make_request
from headscope.engine.edited import describe_edits, edit_if_any, make_edits
from headscope.engine.fingerprint import fingerprint_model
from headscope.engine.images import check_reads_texts
from headscope.engine.load import load, silence_transformers
from headscope.engine.model import Model, check_model, find_word_embeddings
from headscope.engine.pruning.pruned_config import pruned_heads
from headscope.engine.recording.sites import find_sites
from headscope.maps.words import to_words
from headscope.measuring.options import ProbedInputs, ProbeOptions
from headscope.measuring.plan import PlannedBatch, count_tokens, max_cells, plan_batches
from headscope.results.accuracies import document_name, number_documents
from headscope.results.hashes import fingerprint_columns, fingerprint_examples, hash_configs

RANDOM_WEIGHTS = "random_weights"
"""The predictor that is the same probe, fitted to the model with random weights."""


@dataclass(frozen=True)
class StreamSettings(ProbedInputs):
    """Which maps a probe reads: the complete options of `hs.probe`."""

    lens: Lens
    edit: tuple[Edit, ...] = ()

    def to_facts(self) -> dict[str, Any]:
        """Return what decides the numbers, as plain data."""
        facts = {name: getattr(self, name) for name in ("query", "limit", "seed", "max_length")}
        return {"lens": to_spec(self.lens), **facts, **describe_edits(self.edit)}


@dataclass
class ModelStream:
    """The maps of a model between the words of examples; the model runs again at every pass."""

    model: Model
    examples: Sequence[Example]  # in the order of the data
    plan: Sequence[PlannedBatch]
    settings: StreamSettings
    advance: Advance | None = None  # is told the number of examples of every batch that is new
    _seen: set[int] = field(default_factory=set)

    def __iter__(self) -> Iterator[Maps]:
        """Yield the maps of one batch after another, in the order of the plan."""
        return self.batches(0)

    def batches(self, start: int) -> Iterator[Maps]:
        """Yield the maps of the batches from number `start` on."""
        for index in range(start, len(self.plan)):
            yield self._compute(self.plan[index].examples)
            if self.advance is not None and index not in self._seen:
                self.advance(len(self.plan[index]), self.plan[index].work)
            self._seen.add(index)

    def embed(self, words: Sequence[str]) -> Float[Tensor, "word hidden"]:
        """Return the mean input embedding of the tokens of each word; zeros for a word without tokens."""
        layer = find_word_embeddings(self.model.network)
        if layer is None:
            raise InputError(f"The model {self.model.spec} has no input embeddings of words. Give vectors of your own.")
        table = layer[1].weight.detach().float()
        rows = self.model.tokenizer([[word] for word in words], is_split_into_words=True, add_special_tokens=False)
        means = [table[ids].mean(0) if ids else torch.zeros_like(table[0]) for ids in rows["input_ids"]]
        return torch.stack(means)

    def _compute(self, examples: tuple[Example, ...]) -> Maps:
        settings = self.settings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # truncated texts were reported with the plan
            inputs = next(make_batches(self.model, examples, len(examples), max_length=settings.max_length))
        with edit_if_any(self.model, settings.edit) as model:
            request = make_request(model, settings.site, keep=tuple(settings.lens.needs))
            trace = capture_batch(model, inputs, request)
        warn_about_nan(trace)
        return to_words(view(trace, settings.lens), settings.query)


def make_stream(
    model: Model, examples: Sequence[Example], settings: StreamSettings, advance: Advance | None = None
) -> ModelStream:
    """Plan the batches of similar length, longest first."""
    lengths = count_tokens(model, examples, settings.max_length)
    cells, device = max_cells(model, copies=4), model.device.type
    plan = plan_batches(examples, lengths, batch_size=settings.batch_size, cells=cells, device=device)
    return ModelStream(model, examples, plan, settings, advance)


@takes_options(ProbeOptions)
def probe(options: ProbeOptions) -> xr.Dataset:
    """Fit a probe of linguistic structure to the attention between words, and return how accurate it is.

    `probe` is a name, a spec such as "dependency:min_count=50", or an entry. It is fitted to `train`, by default to
    half of the documents of `data`, and reported on the others; an example without the column `document` is a document
    of its own. Weights to a word are summed over its tokens, weights from it averaged, or with `query="first"` those of
    its first token. `random_weights` is a baseline: the same probe, fitted to the same model with random weights.

    >>> columns = {"heads": (1, -1), "relations": ("nsubj", "root")}
    >>> trees = [hs.Example(str(row), "Cats sleep", words=("Cats", "sleep"), columns=columns) for row in range(4)]
    >>> result = hs.probe(model, trees, "dependency:min_count=4", progress=False)
    >>> result["accuracy"].sel(task="dependency", predictor="head", relation="nsubj").item()
    1.0
    """
    model, train, random_weights = options.model, options.train, options.random_weights
    check_model(model)
    check_reads_texts(model, "probes are of the words of texts")
    inputs = {item.name: getattr(options, item.name) for item in fields(ProbedInputs)}
    entry, settings = probes.make(options.probe), make_stream_settings(options.lens, options.edit, **inputs)
    check_seed(getattr(entry, "seed", 0))
    halves = _read_halves(entry, options.data, train, settings)
    models = [model, randomize(model, settings.seed)] if random_weights else [model]
    with show_progress(len(models) * sum(map(len, halves)), quiet=not options.progress) as advance:
        streams = ([make_stream(network, half, settings, advance) for half in halves] for network in models)
        first, *others = (entry.fit(*pair) for pair in streams)
    result = _add_predictor(first, others[0], RANDOM_WEIGHTS) if others else first
    facts = {"command": "hs.probe", "probe": to_spec(entry), "random_weights": random_weights}
    return stamp(
        result, kind="probe", **facts, **_describe(model, settings), **_describe_data(halves, split=train is None)
    )


def make_stream_settings(lens: Any, edit: Any = None, **options: Any) -> StreamSettings:
    """Return settings from what a user writes; raise InputError for what a probe cannot read."""
    lens_object: Lens = lenses.make(lens)
    settings = StreamSettings(lens_object, make_edits(edit), **options)
    if settings.query not in ("mean", "first"):
        raise InputError(
            f"query={settings.query!r} is not known. Give 'mean' or 'first', or leave it out for the mean."
        )
    if str(settings.site).endswith("cross"):
        raise InputError(
            "A probe reads attention between the words of one text, and cross attention has two. Leave out site."
        )
    if lens_object.needs_target:
        raise InputError(
            f"The lens '{to_spec(lens_object)}' needs the gradient of a prediction, and a probe makes none. Choose "
            "another, such as raw or effective."
        )
    check_seed(settings.seed)
    return settings


def split_documents(examples: Sequence[Example], seed: int = 0) -> tuple[list[Example], list[Example]]:
    """Return two halves of the examples, with all examples of a document in one of them.

    Documents are taken in random order; each goes to the half with fewer examples so far.
    """
    names = list(number_documents(examples))
    if len(names) < 2:
        raise InputError(
            "All examples are of one document, so that there is nothing to report on: a probe is fitted on some "
            "documents and reported on others. Give train=… with other texts."
        )
    random.Random(seed).shuffle(names)
    sizes = Counter(map(document_name, examples))
    half_of: dict[str, int] = {}
    filled = [0, 0]
    for name in names:
        half_of[name] = filled.index(min(filled))
        filled[half_of[name]] += sizes[name]
    first, second = ([example for example in examples if half_of[document_name(example)] == half] for half in (0, 1))
    return first, second


def _read_halves(entry: Probe, data: Any, train: Any, settings: StreamSettings) -> tuple[list[Example], list[Example]]:
    """Return the examples to fit and those to report on, as the probe prepares them, with the words of each."""
    examples = sample_examples(_read_words(entry, data), settings.limit, settings.seed)
    if train is None:
        return split_documents(examples, settings.seed)
    others = _read_words(entry, train)
    shared = _find_shared(others, examples)
    if shared:
        raise InputError(
            f"The document '{min(shared)}' is both in the data and in train, so that the report would be of what was "
            "fitted. Leave it out of one of them."
        )
    return others, examples


def _find_shared(first: Sequence[Example], second: Sequence[Example]) -> set[str]:
    """Return the documents that are in both; of examples without documents, those of the same id and words."""
    if any("document" in example.columns for example in (*first, *second)):
        return set(number_documents(first)) & set(number_documents(second))
    first_keys = {(example.id, example.text, example.words) for example in first}
    return {example.id for example in second if (example.id, example.text, example.words) in first_keys}


def _read_words(entry: Probe, data: Any) -> list[Example]:
    examples = entry.prepare(read(data))
    has_words = [example.words is not None or "spans" in example.columns for example in examples]
    return examples if all(has_words) else tag_examples(examples)  # which splits texts into words


def _add_predictor(result: xr.Dataset, other: xr.Dataset, name: str) -> xr.Dataset:
    """Return the result with the first predictor of another one as its last."""
    along = [variable for variable in result.data_vars if "predictor" in result[variable].dims]
    last = other[along].isel(predictor=[0]).assign_coords(predictor=[name])
    return result.drop_vars([*along, "predictor"]).merge(xr.concat([result[along], last], "predictor"))


def _describe(model: Model, settings: StreamSettings) -> dict[str, Any]:
    return {
        "model": model.spec,
        **hash_configs(fingerprint_model(model)),
        **settings.to_facts(),
        "site": settings.site or find_sites(model).main,
        "device": model.device.type,
        "dtype": str(model.network.dtype).removeprefix("torch."),
    }


def _describe_data(halves: tuple[Sequence[Example], Sequence[Example]], *, split: bool) -> dict[str, Any]:
    examples = [example for half in halves for example in half]
    return {
        "data": fingerprint_examples(examples),
        "columns": fingerprint_columns(examples),
        "split": "halves of the documents" if split else "train was given",
        "n": len(halves[1]),
        "n_train": len(halves[0]),
        "documents": len(number_documents(halves[1])),
        "documents_train": len(number_documents(halves[0])),
    }


def randomize(model: Model, seed: int = 0) -> Model:
    """Return a model of the same config and tokenizer with new weights, as before any training."""
    if pruned_heads(model.network.config):
        raise InputError("Random weights are drawn for whole models, but some heads of this one were pruned.")
    with torch.random.fork_rng(), silence_transformers():
        torch.manual_seed(seed)
        network = type(model.network)(deepcopy(model.network.config))
    network = network.to(device=model.device, dtype=model.network.dtype).eval()
    return load(network, tokenizer=model.tokenizer)
