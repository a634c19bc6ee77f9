"""The scripts import their neighbours by bare names, as they do when they run."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "entrypoints"))
