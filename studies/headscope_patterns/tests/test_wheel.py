"""The labelled maps are in the wheel of the studies with their licenses, and not in that of the library."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[3]


def list_wheel(project, folder):
    """Build the wheel of a project, and return the names of its files."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return ZipFile(wheel).namelist()


def test_the_wheel_of_the_studies_has_the_labelled_maps_and_their_licenses(tmp_path):
    names = list_wheel(ROOT / "studies", tmp_path)
    assert "headscope_patterns/labels/bundled/maps.npz" in names
    licenses = {Path(name).name for name in names if ".dist-info/licenses/headscope_patterns/labels/bundled/" in name}
    assert licenses == {"ARCT_LICENSE", "ARCT_NOTICE", "NOTICE", "WINOGENDER_LICENSE"}
    folders = {name.split("/")[1] for name in names if name.startswith("headscope_patterns/")}
    assert not folders & {"pages", "results", "runs", "tests"}


def test_the_wheel_of_the_library_has_the_classifier_alone(tmp_path):
    patterns = {name for name in list_wheel(ROOT, tmp_path) if "patterns/" in name and not name.endswith(".py")}
    assert patterns == {"headscope/patterns/classify/cnn.safetensors"}
