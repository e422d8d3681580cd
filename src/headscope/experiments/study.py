"""Running a study by name."""

from pathlib import Path
from typing import Any

from headscope.core.catalog import studies
from headscope.core.errors import InputError
from headscope.core.spec import file_name
from headscope.core.study import Studied, Study
from headscope.results.store import save


def study(
    name: Any,
    model: Any = None,
    *,
    out: str | Path,
    device: str | None = None,
    progress: bool = True,
    **options: Any,
) -> Studied:
    """Run a published experiment again, on any model and data.

    `name` is one of `headscope list studies`, or a study; `options` are its parameters. `model` is anything `hs.load`
    takes; None is the small default. Every step is kept in the folder `out` as soon as it is done: a study that was
    stopped goes on from there when it is run again, and one that is done gives the same numbers at once. The result has
    the main Dataset as `data`, saved in `out` too, and a `document` that `hs.report` writes as a page.
    """
    if device not in (None, "cpu", "cuda"):
        raise InputError(f"device={device!r} is neither 'cpu' nor 'cuda'. Leave it out for the GPU if there is one.")
    chosen: Study = studies.make(name, **options)
    folder = Path(out)
    try:
        found = chosen.run(model, folder, device=device, progress=progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"Stopped. What is done is kept in {folder}: run the same study again, and it goes on from there."
        ) from None
    for what, data in found.items():
        title = file_name(type(chosen)) if what == "numbers" else f"{file_name(type(chosen))}_{what}"
        save(data, folder / f"{title}.nc")
    return Studied(found, chosen.document(found))
