"""Everything about the network and its training that somebody chose, in one place."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CnnSettings:
    """A network of eight convolutions, and how it is trained; none of this was chosen by looking at test maps."""

    side: int = 32  # pixels of a picture
    widths: tuple[int, ...] = (16, 24, 24, 24, 32, 32, 32, 32)
    strides: tuple[int, ...] = (2, 1, 2, 1, 1, 2, 1, 1)
    middle: int = 32  # features between convolutions and classes
    nets: int = 2  # networks whose mean decides; they differ in their seed
    epochs: int = 30
    batch: int = 64
    rate: float = 1e-2  # of learning, at its height
    decay: float = 0.02  # of weights
    memory: float = 0.98  # of the running mean of weights over steps, which is what is kept
    dropout: float = 0.2
    smoothing: float = 0.05  # of labels
    balance: float = 0.5  # classes weigh by their frequency to minus this power
    power: float = 0.2  # weights are raised to a power between e to minus and to plus this
    jitter: float = 0.2  # largest spread of the noise that weights are multiplied with, in logarithms
    mixed: float = 0.1  # largest share of random rows mixed in
    cut: float = 0.2  # largest share of the tokens cut away
    hand_built: int = 300  # maps built by hand that are trained on beside the labelled ones
    hand_built_weight: float = 0.3  # what one of them counts against a labelled map
    folds: int = 5


USUAL = CnnSettings()
