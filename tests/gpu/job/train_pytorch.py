"""Trains for some seconds on the GPU, if PyTorch sees one, and says which."""

import json
import os
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

SECONDS = 12.0
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
properties = torch.cuda.get_device_properties(0) if device.type == "cuda" else None
told = {"device": properties and properties.name, "uuid": properties and str(properties.uuid)}
print(json.dumps({**told, "visible": os.environ.get("CUDA_VISIBLE_DEVICES", "")}), flush=True)

width = 2048 if properties else 64
model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(4))).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
loader = DataLoader(TensorDataset(torch.randn(4096, width)), batch_size=256)
began = time.monotonic()
while time.monotonic() - began < SECONDS:
    for (batch,) in loader:
        optimizer.zero_grad()
        model(batch.to(device)).square().mean().backward()
        optimizer.step()
