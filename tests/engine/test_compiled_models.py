"""Code that torch.compile compiled does not run within edits and captures, which it was traced without."""

import threading
from contextlib import nullcontext
from itertools import permutations

import pytest
import torch
import transformers

from headscope.ablation.ablate import ablate
from headscope.core.errors import CaptureError
from headscope.engine.capture import capture, record_calls
from headscope.engine.edited import edited
from headscope.engine.load import load
from headscope.engine.recording import interface
from tests.models import batch, network, text, tokenizer
from tests.tiers import spread

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # torch's own, on import

INPUTS = {"input_ids": torch.tensor([[2, 7, 8, 9, 10, 3]]), "attention_mask": torch.ones(1, 6, dtype=torch.long)}
EDITS = ("zero_heads:heads=L0H0", "uniform_heads:heads=L1H1")


def compiled(part, **options):
    return torch.compile(part, backend="eager", **options)


def wrap_layer(net):
    net.encoder.layer[1] = compiled(net.encoder.layer[1])
    return net


def wrap_attention(net):
    for layer in net.encoder.layer:
        layer.attention.self = compiled(layer.attention.self)
    return net


def wrap_encoder(net):
    net.encoder = compiled(net.encoder)
    return net


def wrap_forward(net):
    net.forward = compiled(net.forward)
    return net


def compile_in_place(net):
    net.compile(backend="eager")
    return net


def compile_layers_in_place(net):
    for layer in net.encoder.layer:
        layer.compile(backend="eager")
    return net


WAYS = {
    "wrapped": compiled,
    "wrapped, one graph": lambda net: compiled(net, fullgraph=True),
    "wrapped, any shape": lambda net: compiled(net, dynamic=True),
    "in place": compile_in_place,
    "layers in place": compile_layers_in_place,
    "forward": wrap_forward,
    "encoder wrapped": wrap_encoder,
    "a layer wrapped": wrap_layer,
    "attention wrapped": wrap_attention,
}


def build(implementation="sdpa", kind="bert"):
    net = network(kind)
    net.set_attn_implementation(implementation)
    return net


def run(call):
    with torch.no_grad():
        return call(**INPUTS).last_hidden_state


def edit_plain(name, **options):
    net = build(**options)
    with edited(load(net, tokenizer=tokenizer()), name):
        return run(net)


@pytest.fixture(autouse=True)
def forget_graphs():
    yield
    torch.compiler.reset()


@pytest.mark.parametrize(("way", "implementation"), spread(list(WAYS), ["sdpa", "eager"]))
def test_a_compiled_model_that_ran_before_is_edited_and_runs_as_before_afterwards(way, implementation):
    call = WAYS[way](build(implementation))
    before = run(call)
    model = load(call, tokenizer=tokenizer())
    for name in EDITS:
        with edited(model, name):
            assert torch.equal(run(call), edit_plain(name, implementation=implementation))
        assert torch.equal(run(call), before)


@pytest.mark.parametrize("way", WAYS)
def test_a_compiled_model_that_ran_before_is_captured(way):
    call = WAYS[way](build())
    run(call)
    model, plain = load(call, tokenizer=tokenizer()), load(build(), tokenizer=tokenizer())
    trace, expected = capture(model, batch("bert")), capture(plain, batch("bert"))
    for name in ("attention", "values", "output"):
        layers = zip(getattr(trace, name), getattr(expected, name), strict=True)
        assert all(torch.equal(mine, other) for mine, other in layers)
    with record_calls(model, "self") as recorder:
        run(call)
    assert [call.name.replace("_orig_mod.", "").split(".")[2] for call in recorder.calls] == ["0", "1"]


def test_a_function_that_calls_the_model_is_edited():
    net = build("eager")
    call = compiled(lambda **inputs: net(**inputs))
    before = run(call)
    with edited(load(net, tokenizer=tokenizer()), EDITS[0]):
        assert torch.equal(run(call), edit_plain(EDITS[0], implementation="eager"))
    assert torch.equal(run(call), before)


def test_a_model_that_is_compiled_and_first_run_within_an_edit_is_edited_only_there():
    net = build("eager")
    before = run(net)
    with edited(load(net, tokenizer=tokenizer()), EDITS[0]):
        call = compiled(net)
        assert torch.equal(run(call), edit_plain(EDITS[0], implementation="eager"))
    assert torch.equal(run(call), before)


def test_a_compiled_model_that_bypasses_the_interface_is_edited():
    call = compiled(build("eager", "mpnet"))
    before = run(call)
    with edited(load(call, tokenizer=tokenizer()), EDITS[0]):
        assert torch.equal(run(call), edit_plain(EDITS[0], implementation="eager", kind="mpnet"))
    assert torch.equal(run(call), before)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_compiled_code_runs_again_when_the_last_edit_or_capture_ends(order):
    graphs = []

    def backend(graph, _):
        def run_graph(*inputs):
            graphs.append(graph)
            return graph(*inputs)

        return run_graph

    net = build()
    call, model = torch.compile(net, backend=backend), load(net, tokenizer=tokenizer())
    run(call)
    blocks = [edited(model, EDITS[0]), record_calls(model, "self"), edited(model, EDITS[1])]
    for block in blocks:
        block.__enter__()
    for ended in order:
        graphs.clear()
        run(call)
        assert not graphs
        blocks[ended].__exit__(None, None, None)
    run(call)
    assert len(graphs) == 1


def test_the_users_own_stance_comes_back():
    net = build()
    call, model = compiled(net), load(net, tokenizer=tokenizer())
    run(call)
    with torch.compiler.set_stance(skip_guard_eval_unsafe=True):  # refuses to compile anything new
        before = run(call)
        with edited(model, EDITS[0]):
            assert torch.equal(run(call), edit_plain(EDITS[0]))
        assert torch.equal(run(call), before)


def test_another_thread_gets_the_compiled_models_answer_meanwhile():
    call = compiled(build())
    before, answers = run(call), []
    with edited(load(call, tokenizer=tokenizer()), EDITS[0]):
        thread = threading.Thread(target=lambda: answers.append(run(call)))
        thread.start()
        thread.join()
    assert torch.equal(answers[0], before)


@pytest.mark.parametrize("way", ["a layer wrapped", "attention wrapped", "layers in place"])
def test_heads_of_a_compiled_model_are_ablated_as_those_of_the_plain_one(way):
    def score(change):
        torch.manual_seed(0)
        net = transformers.BertForSequenceClassification(network("bert").config).eval()
        change(net.bert)
        data = [{"text": text(6, seed=seed), "label": seed % 2} for seed in range(4)]
        return ablate(load(net, tokenizer=tokenizer()), data, progress=False)

    ours, plain = score(WAYS[way]), score(lambda net: net)
    for name in plain:
        assert ours[name].equals(plain[name])


REFUSED = r"within a function that torch\.compile compiled.*Call it outside, or mark the function"


def test_compiled_code_cannot_be_switched_off_within_itself():
    @torch.compile(backend="eager")
    def work(number):
        interface._force_eager()
        return number + 1

    with pytest.raises(CaptureError, match=REFUSED):
        work(torch.ones(1))


@pytest.mark.filterwarnings("ignore:Dynamo :UserWarning")  # what it cannot trace
def test_a_capture_within_compiled_code_is_refused_unless_it_is_marked():
    model = load(build(), tokenizer=tokenizer())

    def count_layers():
        return len(capture(model, text(4)).attention)

    for count, said in (
        (count_layers, pytest.raises(CaptureError, match=REFUSED)),
        (torch.compiler.disable(count_layers), nullcontext()),
    ):
        work = torch.compile(lambda number, count=count: number + count(), backend="eager")
        with said:
            assert work(torch.ones(1)) == 3
