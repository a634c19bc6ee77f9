"""What a command answers is JSON that every reader takes."""

import json
import math
from argparse import Namespace

from estimator_sdk.cli import answer


def test_a_number_that_is_not_finite_is_null(capsys):
    document = {"metrics": {"loss": math.nan, "best": [math.inf, 1.5]}, "rows": ({"step": -math.inf},), "final": True}
    answer.show(Namespace(json=True), document, ())
    found = json.loads(capsys.readouterr().out, parse_constant=lambda name: f"not JSON: {name}")
    assert found == {"metrics": {"loss": None, "best": [None, 1.5]}, "rows": [{"step": None}], "final": True}
