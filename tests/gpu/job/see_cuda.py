"""Computes on a GPU by PyTorch, and says how many there are and for which CUDA PyTorch was built."""

import json

import torch

total = float(torch.ones(1 << 20, device="cuda").sum())
print(json.dumps({"devices": torch.cuda.device_count(), "cuda": torch.version.cuda, "total": total}))
