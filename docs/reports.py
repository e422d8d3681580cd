"""Write the HTML reports of all studies from the results in docs/results, one folder for each model.

python docs/reports.py                   into out/reports
python docs/reports.py --out FOLDER
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from pages import argument_cues_facts, attention_flow_facts, dark_secrets_facts, sixteen_heads_facts
from pages.effective_attention_facts import STEM, read_facts
from pages.study_facts import RESULTS

from headscope.core.document import Document
from headscope.core.study import Results
from headscope.reporting.write import write_document
from headscope.results.store import open_result
from headscope.studies.argument_cues import report as argument_cues
from headscope.studies.attention_flow import report as attention_flow
from headscope.studies.dark_secrets import report as dark_secrets
from headscope.studies.effective_attention import report as effective_attention
from headscope.studies.sixteen_heads import report as sixteen_heads


def make_reports(folder: Path = RESULTS) -> Iterator[tuple[str, Document]]:
    """Yield the name and the report of every model of every study."""
    for label, numbers in read_facts(folder).measured.items():
        results: Results = {"numbers": numbers}
        for part in ("maps", "times"):
            path = folder / f"{STEM}{label}_{part}.nc"
            if path.is_file():
                results[part] = open_result(path)
        yield f"{STEM}{label}", effective_attention.document(results)
    flow = attention_flow_facts.read_facts(folder)
    for label, numbers in flow.measured.items():
        yield f"{flow.stem}{label}", attention_flow.document({"numbers": numbers, **flow.more[label]})
    dark = dark_secrets_facts.read_facts(folder)
    for label, numbers in dark.measured.items():
        yield f"{dark.stem}{label}", dark_secrets.document({"numbers": numbers, **dark.more[label]})
    heads = sixteen_heads_facts.read_facts(folder)
    more: Results = {} if heads.sites is None else {"translation": heads.sites}
    for label, numbers in heads.measured.items():
        yield f"{heads.stem}{label}", sixteen_heads.document({"numbers": numbers, **more})

    arguments = argument_cues_facts.read_facts(folder)
    for label, numbers in arguments.measured.items():
        yield f"{arguments.stem}{label}", argument_cues.document({"numbers": numbers, **arguments.more[label]})


def main() -> None:
    """Write all reports."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, default=Path("out/reports"), help="where the reports go")
    out = options.parse_args().out
    for name, document in make_reports():
        sys.stdout.write(f"{write_document(document, out / name, overwrite=True)}\n")


if __name__ == "__main__":
    main()
