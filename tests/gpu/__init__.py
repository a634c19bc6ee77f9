"""What only a machine with an NVIDIA GPU can show: `scripts/test gpu` runs it there, and writes docs/gpu.md.

    machine.py      the GPUs of this machine, as nvidia-smi tells them
    checks.py       what is asked of it, one function for each thing
    training.py     a job of PyTorch or TensorFlow, run by the Python that has its CUDA build
    report.py       the page that says what came of it
    job/            the scripts of the jobs

The tests of the other lanes need no GPU, and none of them is skipped for want of one.
"""
