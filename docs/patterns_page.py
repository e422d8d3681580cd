"""What the pages on patterns show: pictures and tables from the labelled maps and from committed results."""

from pathlib import Path

from matplotlib.figure import Figure

from headscope.patterns.classes import NAMES
from headscope.patterns.labelled import open_labelled
from headscope.patterns.sheet import draw_map
from headscope.results import theme

RESULTS = Path(__file__).parent / "results"


@theme.applied()
def guide_picture() -> Figure:
    """The examples of the guide: two maps of each class, none of them part of the labelled set."""
    maps, labels = open_labelled(RESULTS / "labelling").chosen("guide")
    page = Figure(figsize=(11, 4.9), layout="constrained")
    axes = page.subplots(2, len(NAMES))
    for place, name in enumerate(NAMES):
        chosen = [each for each, label in zip(maps, labels, strict=True) if label == name]
        for each, ax in zip(chosen, axes[:, place], strict=True):
            draw_map(each, ax)
            ax.set_box_aspect(1)
        axes[0, place].set_title(NAMES[name])
    return page


def pictures() -> dict[str, Figure]:
    """Every picture by the name of its file."""
    return {"labelling.svg": guide_picture()}
