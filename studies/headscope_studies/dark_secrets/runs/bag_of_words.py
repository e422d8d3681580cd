"""Measure how often a bag of words is right on SST-2: logistic regression on counts of words, as scikit-learn has them.

It stands beside models tuned from random weights on as many sentences, and is read by `pages/page.py`. Takes seconds:

    python runs/bag_of_words.py --data GLUE --out results/bag_of_words.nc
"""

import numpy as np
import xarray as xr
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

import headscope as hs
from headscope.core.estimate import interval_names
from headscope.core.example import Example
from headscope.core.provenance import stamp
from headscope.experiments.runs import make_parser
from headscope.results.hashes import fingerprint_examples
from headscope.uncertainty.intervals import wilson_interval

SENTENCES = 16_000
"""As many as the models of the study learned from."""


def measure(train: list[Example], dev: list[Example]) -> tuple[float, float, float]:
    """Return the share of dev that is right, with its interval, of a bag of words learned from train."""
    counter = CountVectorizer()
    classifier = LogisticRegression(max_iter=1000)
    classifier.fit(counter.fit_transform([example.text for example in train]), [example.label for example in train])
    said = classifier.predict(counter.transform([example.text for example in dev]))
    right = int(sum(answer == example.label for answer, example in zip(said, dev, strict=True)))
    return right / len(dev), *wilson_interval(right, len(dev))


def main() -> None:
    """Measure it on a sample of the training sentences, drawn at random, and on all of them."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    train, dev = (hs.read(f"glue:sst-2:{part}@{options.data}") for part in ("train", "dev"))
    drawn = [train[index] for index in np.random.default_rng(options.seed).permutation(len(train))[:SENTENCES]]
    sets = {len(part): measure(part, dev) for part in (drawn, train)}
    columns = zip(interval_names("accuracy"), np.array(list(sets.values())).T, strict=True)
    data = xr.Dataset({name: ("train", values) for name, values in columns}, {"train": list(sets)})
    command = "dark_secrets/runs/bag_of_words.py --data GLUE --out results/bag_of_words.nc"
    facts = {"model": "bag of words", "train": fingerprint_examples(train), "seed": options.seed}
    hs.save(
        stamp(data, command=command, data=fingerprint_examples(dev), n=len(dev), **facts), options.out, overwrite=True
    )


if __name__ == "__main__":
    main()
