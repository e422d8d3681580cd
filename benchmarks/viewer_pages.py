"""Pages of attention maps as BertViz and headscope make them, and what making one costs."""

import ctypes
import gc
import multiprocessing
import re
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from headscope.core.lens import view
from headscope.core.trace import Trace
from headscope.data.reading.read import read
from headscope.engine.capture import capture
from headscope.engine.load import load
from headscope.engine.model import Model
from headscope.viewer.encode import Codec
from headscope.viewer.page import write_viewer_page
from headscope.viewer.source import make_source

Maker = Callable[[Trace, Path], None]
REPEATS = 2  # the six layers of the default model make twelve
FIRST_PICTURE = re.compile(rb'id="0/0/thumbs"[^>]*>[^<]*</script>\n')


@dataclass(frozen=True)
class Cost:
    """What it takes to make a page, from the captured attention to the file."""

    cpu_s: float
    wall_s: float
    peak_mb: float  # memory beyond what the process held before


def load_deep_model() -> Model:
    """Load the default model with its six layers twice: real attention of 12 layers × 12 heads."""
    model = load()
    config = deepcopy(model.network.config)
    count = config.num_hidden_layers
    config.num_hidden_layers = REPEATS * count
    network = type(model.network)(config).eval()
    weights = model.network.state_dict()
    network.load_state_dict({name: weights[_name_in_default(name, count)] for name in network.state_dict()})
    return load(network, tokenizer=model.tokenizer)


def _name_in_default(name: str, layers: int) -> str:
    return re.sub(r"(?<=encoder\.layer\.)\d+", lambda number: str(int(number[0]) % layers), name)


def capture_text(model: Model, tokens: int) -> Trace:
    """Capture the bundled paragraphs, cut after some tokens."""
    text = " ".join(example.text for example in read("sample"))
    encoded = model.tokenizer(text, truncation=True, max_length=tokens, return_tensors="pt")
    return capture(model, dict(encoded))


def make_headscope_page(codec: Codec, lenses: tuple[str, ...]) -> Maker:
    """Return what makes headscope's page of some lenses."""

    def make(trace: Trace, path: Path) -> None:
        write_viewer_page(make_source([view(trace, lens) for lens in lenses], codec=codec), path)

    return make


def make_bertviz_page(name: str) -> Maker:
    """Return what makes the page of BertViz's model_view or head_view."""
    import bertviz

    def make(trace: Trace, path: Path) -> None:
        attention = [trace.attention[layer] for layer in range(len(trace.layers))]
        page = getattr(bertviz, name)(attention, list(trace.queries.text[0]), html_action="return")
        path.write_text(page.data, encoding="utf-8")

    return make


def measure_cost(make: Maker, trace: Trace, path: Path) -> Cost:
    """Make a page in a child process, whose peak of memory is its own."""
    context = multiprocessing.get_context("fork")  # the captured attention is there already
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_send_cost, args=(make, trace, path, sender))
    torch.set_num_threads(1)  # threads do not survive a fork
    _give_back_memory()
    child.start()
    sender.close()
    try:
        cost: Cost = receiver.recv()
    finally:
        child.join()
    return cost


def _send_cost(make: Maker, trace: Trace, path: Path, sender: Any) -> None:
    before, cpu, wall = _peak_mb(), time.process_time(), time.perf_counter()
    make(trace, path)
    sender.send(Cost(time.process_time() - cpu, time.perf_counter() - wall, _peak_mb() - before))


def _give_back_memory() -> None:
    """Return freed memory to the system: a child that took it over would seem to need less."""
    gc.collect()
    with suppress(OSError, AttributeError):  # another C library than glibc
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6  # KiB on Linux


def count_first_bytes(content: bytes) -> int:
    """Return how many bytes of headscope's page a browser reads until it has the small pictures of all heads."""
    found = FIRST_PICTURE.search(content)
    if found is None:
        raise ValueError("The page has no thumbnails of its first lens: it was not written by write_viewer_page.")
    return found.end()
