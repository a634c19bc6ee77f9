"""What is read of GPUs, by a library that speaks NVML's C API and is compiled here."""

import subprocess
from pathlib import Path

import pytest
from estimator_container.telemetry import metric_table as table
from estimator_container.telemetry.gpu_load import GpuLoad, NvmlMissing
from estimator_container.telemetry.metric_table import SeriesKey

GIB = 1 << 30


def compiled(source, tmp_path):
    library = tmp_path / "libnvidia-ml.so.1"
    command = ["cc", "-shared", "-fPIC", "-o", library, "-x", "c", "-"]
    subprocess.run(command, input=source, text=True, check=True, timeout=120)
    return str(library)


def test_all_that_a_gpu_tells_is_read_and_what_it_does_not_tell_is_left_out(tmp_path):
    load = GpuLoad(compiled(Path(__file__).with_name("nvml.c").read_text(), tmp_path))
    first = load.read([])
    found = load.read([(7, frozenset({4242, 4243, 1})), (8, frozenset({2}))])
    assert first[SeriesKey(table.GPU_XID, None, "1")] == 0
    assert found == {
        SeriesKey(table.GPU, None, "0"): 0.97,
        SeriesKey(table.GPU, None, "1"): 0.03,
        SeriesKey(table.GPU_MEMORY, None, "0"): 40 * GIB,
        SeriesKey(table.GPU_MEMORY, None, "1"): GIB,
        SeriesKey(table.GPU_MEMORY_LIMIT, None, "0"): 80 * GIB,
        SeriesKey(table.GPU_MEMORY_LIMIT, None, "1"): 80 * GIB,
        SeriesKey(table.GPU_POWER, None, "0"): 699.0,
        SeriesKey(table.GPU_POWER, None, "1"): 71.25,
        SeriesKey(table.GPU_TEMPERATURE, None, "0"): 64,
        SeriesKey(table.GPU_TEMPERATURE, None, "1"): 64,
        SeriesKey(table.GPU_THROTTLE, None, "0"): 4,
        SeriesKey(table.GPU_THROTTLE, None, "1"): 0,
        SeriesKey(table.GPU_CORRECTED, None, "0"): 12,
        SeriesKey(table.GPU_UNCORRECTED, None, "0"): 1,
        SeriesKey(table.GPU_XID, None, "0"): 0,
        SeriesKey(table.GPU_XID, None, "1"): 79,
        SeriesKey(table.RANK_GPU_MEMORY, 7, "0"): 39 * GIB,
    }
    assert load.read([])[SeriesKey(table.GPU_XID, None, "1")] == 79  # the last one stays


@pytest.mark.parametrize(
    ("visible", "numbers"),
    [
        ("GPU-b", ["1"]),
        ("MIG-b", ["1"]),
        ("0", ["0"]),
        ("1,0", ["0", "1"]),
        ("GPU-of-another-machine", ["0", "1"]),
        ("", []),
    ],
)
def test_a_host_reads_the_gpus_that_it_was_given(tmp_path, visible, numbers):
    library = compiled(Path(__file__).with_name("nvml.c").read_text(), tmp_path)
    found = GpuLoad(library, visible).read([])
    assert sorted(key.part for key in found if key.metric == table.GPU) == numbers


def test_without_a_library_or_a_driver_that_is_said(tmp_path):
    with pytest.raises(NvmlMissing):
        GpuLoad(str(tmp_path / "libnvidia-ml.so.1"))
    with pytest.raises(NvmlMissing, match="no driver"):
        GpuLoad(compiled("int nvmlInit_v2(void) { return 9; }", tmp_path))


def test_an_older_driver_lacks_functions_and_those_it_has_are_asked(tmp_path):
    source = """
    int nvmlInit_v2(void) { return 0; }
    int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return 0; }
    int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = (void *)&nvmlInit_v2; return 0; }
    int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) { *milliwatts = 50000; return 0; }
    """
    found = GpuLoad(compiled(source, tmp_path)).read([(0, frozenset({1}))])
    assert found == {SeriesKey(table.GPU_POWER, None, "0"): 50.0, SeriesKey(table.GPU_XID, None, "0"): 0}
