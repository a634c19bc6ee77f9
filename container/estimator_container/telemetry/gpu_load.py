"""What is read of NVIDIA's GPUs, by the driver's own library NVML.

Source: "NVML API Reference Guide" of NVIDIA; the numbers below are those of its `nvml.h`.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterable, Iterator

from . import metric_table as table
from .metric_table import SeriesKey

LIBRARY = "libnvidia-ml.so.1"
_OK, _INSUFFICIENT_SIZE = 0, 7
_TEMPERATURE_GPU = 0
_CORRECTED, _UNCORRECTED = 0, 1
_SINCE_DRIVER = 0
_XID = 8
_MOST_PROCESSES = 64


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _ProcessInfo(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class _EventData(ctypes.Structure):
    _fields_ = (
        ("device", ctypes.c_void_p),
        ("type", ctypes.c_ulonglong),
        ("data", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class NvmlMissing(Exception):
    """There is no library, or no driver that it can talk to."""


class GpuLoad:
    """Reads what the GPUs of a host do."""

    def __init__(self, library: str = LIBRARY, visible: str | None = None) -> None:
        """`visible` is what `CUDA_VISIBLE_DEVICES` names; None for all GPUs of the machine. Raises NvmlMissing."""
        try:
            self._nvml = ctypes.CDLL(library)
            ready = self._nvml.nvmlInit_v2() == _OK
        except (OSError, AttributeError) as error:
            raise NvmlMissing(str(error)) from None
        if not ready:
            raise NvmlMissing(f"{library} finds no driver")
        self._devices = self._open_devices(visible)
        self._xids = dict.fromkeys(self._devices, 0)
        self._events = self._watch_events()

    def read(self, ranks: Iterable[tuple[int | None, frozenset[int]]]) -> dict[SeriesKey, float]:
        """The values of all GPUs, and of the ranks with these processes. What a GPU does not tell is left out."""
        self._take_events()
        found: dict[SeriesKey, float] = {}
        of_ranks = list(ranks)
        for number, device in self._devices.items():
            part = str(number)
            for metric, value in self._of_device(device):
                found[SeriesKey(metric, None, part)] = value
            found[SeriesKey(table.GPU_XID, None, part)] = self._xids[number]
            used = dict(self._of_processes(device))
            for rank, pids in of_ranks:
                if used.keys() & pids:
                    key = SeriesKey(table.RANK_GPU_MEMORY, rank, part)
                    found[key] = sum(size for pid, size in used.items() if pid in pids)
        return found

    def _open_devices(self, visible: str | None) -> dict[int, ctypes.c_void_p]:
        """By their numbers: those that are named, or all where one of the names is none of NVML's."""
        count, devices = ctypes.c_uint(), dict[int, ctypes.c_void_p]()
        self._ask("nvmlDeviceGetCount_v2", ctypes.byref(count))
        for number in range(count.value):
            device = ctypes.c_void_p()
            if self._ask("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(number), ctypes.byref(device)):
                devices[number] = device
        if visible is None:
            return devices
        numbers = {self._number_of(name.strip()) for name in visible.split(",") if name.strip()}
        return {number: devices[number] for number in sorted(numbers)} if numbers <= devices.keys() else devices

    def _number_of(self, name: str) -> int:
        """That of a GPU, or of the one that a MIG device is a part of; -1 for what NVML does not know."""
        if name.isdigit():
            return int(name)
        device, whole, number = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
        if not self._ask("nvmlDeviceGetHandleByUUID", name.encode(), ctypes.byref(device)):
            return -1
        if self._ask("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", device, ctypes.byref(whole)):
            device = whole
        return number.value if self._ask("nvmlDeviceGetIndex", device, ctypes.byref(number)) else -1

    def _of_device(self, device: ctypes.c_void_p) -> Iterator[tuple[str, float]]:
        utilization, memory = _Utilization(), _Memory()
        number, long = ctypes.c_uint(), ctypes.c_ulonglong()
        if self._ask("nvmlDeviceGetUtilizationRates", device, ctypes.byref(utilization)):
            yield table.GPU, utilization.gpu / 100
        if self._ask("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory)):
            yield table.GPU_MEMORY, memory.used
            yield table.GPU_MEMORY_LIMIT, memory.total
        if self._ask("nvmlDeviceGetPowerUsage", device, ctypes.byref(number)):
            yield table.GPU_POWER, number.value / 1000
        if self._ask("nvmlDeviceGetTemperature", device, _TEMPERATURE_GPU, ctypes.byref(number)):
            yield table.GPU_TEMPERATURE, number.value
        if self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", device, ctypes.byref(long)):
            yield table.GPU_THROTTLE, long.value
        for kind, metric in ((_CORRECTED, table.GPU_CORRECTED), (_UNCORRECTED, table.GPU_UNCORRECTED)):
            if self._ask("nvmlDeviceGetTotalEccErrors", device, kind, _SINCE_DRIVER, ctypes.byref(long)):
                yield metric, long.value

    def _of_processes(self, device: ctypes.c_void_p) -> Iterator[tuple[int, int]]:
        count = ctypes.c_uint(_MOST_PROCESSES)
        infos = (_ProcessInfo * _MOST_PROCESSES)()
        if self._ask("nvmlDeviceGetComputeRunningProcesses_v3", device, ctypes.byref(count), infos):
            for info in infos[: count.value]:
                yield info.pid, info.used

    def _watch_events(self) -> ctypes.c_void_p | None:
        events = ctypes.c_void_p()
        if not self._ask("nvmlEventSetCreate", ctypes.byref(events)):
            return None
        for device in self._devices.values():
            self._ask("nvmlDeviceRegisterEvents", device, ctypes.c_ulonglong(_XID), events)
        return events

    def _take_events(self) -> None:
        """Note the XID errors that have come since the call before, without waiting for any."""
        data = _EventData()
        for _ in range(len(self._devices) * 4 if self._events is not None else 0):
            if not self._ask("nvmlEventSetWait_v2", self._events, ctypes.byref(data), ctypes.c_uint(0)):
                return
            for number, device in self._devices.items():
                if device.value == data.device:
                    self._xids[number] = data.data

    def _ask(self, function: str, *arguments: object) -> bool:
        """Whether NVML knows the function, and answered."""
        with contextlib.suppress(AttributeError):
            return bool(getattr(self._nvml, function)(*arguments) == _OK)
        return False
