"""An optimizer of PyTorch on each rank's own numbers: the ranks agree only if Horovod averages."""

import hashlib

import horovod.torch as hvd
import torch

hvd.init()
torch.manual_seed(hvd.rank())
model = torch.nn.Linear(4, 1)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
for _ in range(5):
    data = torch.randn(16, 4)
    optimizer.zero_grad()
    ((model(data) - data.sum(1, keepdim=True)) ** 2).mean().backward()
    optimizer.step()
every = hvd.allgather_object(hashlib.sha256(model.weight.detach().numpy().tobytes()).hexdigest())
print("trained", hvd.size(), len(set(every)), torch.__version__, flush=True)
