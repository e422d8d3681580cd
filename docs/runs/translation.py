"""Train a small encoder-decoder from scratch on the messages of docs/runs/parallel_text.py, once for each seed.

    python docs/runs/translation.py PARALLEL --seed 0 --out MODELS

writes MODELS/translation-0, a model folder, and MODELS/translation-0.json with its scores on the test pairs and what
they came from, which is in docs/results as translation_0.json, beside those of seeds 1 and 2. The model is that of the
study of sixteen heads: 3 + 3 layers with 8 heads each, so 72 heads at three sites. More epochs give a better model: two
take about a minute and a half on a GPU.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import headscope as hs
from headscope.training.finetuning.folder import read_stamp

SIZES = {"d_model": 256, "encoder_layers": 3, "decoder_layers": 3, "encoder_ffn_dim": 1024, "decoder_ffn_dim": 1024}
HEADS = {"encoder_attention_heads": 8, "decoder_attention_heads": 8}
SUBWORDS = 8000
TUNING: dict[str, Any] = {
    "task": "translation",
    "tokenizer": "subwords",
    "epochs": 2,
    "batch_size": 256,
    "max_length": 64,
    "learning_rate": 1e-3,
    "warmup": 0.1,
    "weight_decay": 0.01,
}
DEV = 500  # pairs that are scored after each epoch
CHECKPOINTS = 10  # models during training, for the importance of their heads


def train(data: Path, out: Path, *, seed: int, **options: Any) -> Any:
    """Return the model that was trained with a seed, and its scores on the test pairs."""
    import transformers

    config = transformers.BartConfig(
        **SIZES, **HEADS, vocab_size=SUBWORDS, max_position_embeddings=128, dropout=0.1, init_std=0.05
    )
    model = hs.finetune(
        config,
        data / "train.tsv",
        dev=hs.read(data / "dev.tsv")[:DEV],
        out=out,
        seed=seed,
        resume=True,
        checkpoints=CHECKPOINTS,
        **{**TUNING, **options},
    )
    return model, hs.score(model, data / "test.tsv", batch_size=256)


def main() -> None:
    """Train one seed, and write its scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=TUNING["epochs"])
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    folder = options.out / f"translation-{options.seed}"
    _, scores = train(options.data, folder, seed=options.seed, epochs=options.epochs, limit=options.limit)
    found = {
        "command": "docs/runs/translation.py",
        "training": read_stamp(folder),
        "scores": {str(name): float(scores[name]) for name in scores.data_vars if scores[name].ndim == 0},
    }
    text = json.dumps(found, indent=1, ensure_ascii=False)
    (options.out / f"{folder.name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
