"""The effects of removing an edge, one whole run of the model for each, with plain hooks. Slow and literal."""

from contextlib import ExitStack

import torch

from headscope.engine.batch import make_batches, read_inputs
from headscope.engine.capture import capture

PROJECTIONS = {
    ("bert", "self"): "encoder.layer.{}.attention.output.dense",
    ("gpt2", "self"): "h.{}.attn.c_proj",
    ("llama", "self"): "layers.{}.self_attn.o_proj",
    ("t5", "encoder"): "encoder.block.{}.layer.0.SelfAttention.o",
    ("t5", "decoder"): "decoder.block.{}.layer.0.SelfAttention.o",
    ("t5", "cross"): "decoder.block.{}.layer.1.EncDecAttention.o",
    ("bart", "cross"): "decoder.layers.{}.encoder_attn.out_proj",
}
BLOCKS = {"bert": "encoder.layer", "gpt2": "h", "llama": "layers", "t5": "decoder.block", "bart": "decoder.layers"}


class Oracle:
    """One text, read by a model of a kind at a site."""

    def __init__(self, model, kind, text, site, score=None):
        self.model, self.kind, self.site, self.score = model, kind, site, score
        (self.inputs,) = make_batches(model, read_inputs(model, [text]), 1)
        example = self.inputs.examples[0]
        self.trace = capture(model, example.text, example.pair, site=site, keep=("values",))
        self.base = self.run()

    def run(self, edge=None, remove="zero", merged=False):
        """Return the output of the edge's attention block at its query, the last hidden states, and the score."""
        found = {}

        def change(module, args):
            layer, head, query, key = edge
            context = args[0].clone()
            attention, values = self.trace.attention[layer][0], self.trace.values[layer][0]
            size = values.shape[-1]
            for each in range(len(attention)) if merged else [head]:
                row = attention[each, query].clone()
                total = row.sum()
                row[key] = 0
                if remove == "renormalize":
                    row = row / row.sum() * total
                context[0, query, each * size : (each + 1) * size] = row @ values[each]
            return (context, *args[1:])

        with ExitStack() as stack, torch.no_grad():
            network = self.model.network
            inner = getattr(network, network.base_model_prefix, network) if hasattr(network, "base_model") else network
            for layer in range(len(self.trace.layers)):
                module = inner.get_submodule(PROJECTIONS[self.kind, self.site].format(layer))
                if edge is not None and layer == edge[0]:
                    stack.enter_context(module.register_forward_pre_hook(change))
                keep = lambda _, __, output, layer=layer: found.setdefault(layer, output)  # noqa: E731
                stack.enter_context(module.register_forward_hook(keep))
            last = list(inner.get_submodule(BLOCKS[self.kind]))[-1]
            stack.enter_context(last.register_forward_hook(lambda _, __, output: found.update(last=output)))
            output = network(**self.inputs.tensors)
        hidden = found["last"][0] if isinstance(found["last"], tuple) else found["last"]
        score = None if self.score is None else self.score(output)
        return [found[layer] for layer in range(len(self.trace.layers))], hidden[0], score

    def effects(self, edge, read, **options):
        """Return the changes of the block's output, of the last hidden state of `read` tokens, and of the score."""
        (before, hidden, score), (after, changed, other) = self.base, self.run(edge, **options)
        layer, _, query, _ = edge
        output = (after[layer][0, query] - before[layer][0, query]).norm()
        states = [states[read].mean(0) if read == slice(None) else states[read] for states in (hidden, changed)]
        relative = (states[1] - states[0]).norm() / states[0].norm()
        change = torch.nan if score is None else float(score[0] - other[0])
        return float(output), float(relative), abs(change), change
