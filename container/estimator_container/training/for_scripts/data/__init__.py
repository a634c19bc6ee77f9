"""The input of a training script: shards divided among ranks, read ahead, and continued in the middle of an epoch.

    dataset.py         `Dataset`: the data of a rank, and the position in them
    pipe.py            `PipeDataset`: the same for a channel in pipe mode
    checks.py          whether their arguments are what they are to be
    for_torch.py, for_tensorflow.py, for_numpy.py     adapters, each imported by its own name
    order.py           which samples a rank gets in which step
    position.py        what a checkpoint keeps
    reading/           shards as they are read, ahead of the script, and from a store

Scripts import it as `estimator_container.data`. Its core needs only the standard library.
"""

from __future__ import annotations

from .dataset import Dataset as Dataset
from .errors import DataError as DataError
from .pipe import PipeDataset as PipeDataset
