"""Devices, memory and allocators by onnxruntime's names. The only device that holds values is the CPU."""

from __future__ import annotations

import enum
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple, overload

from . import _core
from ._errors import Fail, InvalidArgument
from ._errors import NotImplemented as NotSupported


class OrtDeviceVendorId(enum.IntEnum):
    """Numbers that vendors of devices have on PCI; `NONE` for a device of no vendor in particular, as the CPU is."""

    NONE = 0x0000
    AMD = 0x1002
    NVIDIA = 0x10DE
    ARM = 0x13B5
    MICROSOFT = 0x1414
    HUAWEI = 0x19E5
    QUALCOMM = 0x5143
    INTEL = 0x8086


class OrtDeviceMemoryType(enum.IntEnum):
    """Whose memory a device uses: its own, or memory that the CPU reaches as well."""

    DEFAULT = 0
    HOST_ACCESSIBLE = 5


class OrtMemoryInfoDeviceType(enum.IntEnum):
    """Kinds of devices that memory may be on."""

    CPU = 0
    GPU = 1
    FPGA = 2
    NPU = 3


class OrtMemType(enum.IntEnum):
    """What memory is for: inputs or outputs on the CPU of another device's operators, or anything."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtAllocatorType(enum.IntEnum):
    """How memory is allocated."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


class OrtHardwareDeviceType(enum.IntEnum):
    """Kinds of hardware."""

    CPU = 0
    GPU = 1
    NPU = 2


class OrtExecutionProviderDevicePolicy(enum.IntEnum):
    """How devices are chosen. treadle has one device, which every policy chooses."""

    DEFAULT = 0
    PREFER_CPU = 1
    PREFER_NPU = 2
    PREFER_GPU = 3
    MAX_PERFORMANCE = 4
    MAX_EFFICIENCY = 5
    MIN_OVERALL_POWER = 6


class ArenaExtendStrategy(enum.IntEnum):
    """How an arena grows."""

    kNextPowerOfTwo = 0  # noqa: N815 - onnxruntime's name
    kSameAsRequested = 1  # noqa: N815 - onnxruntime's name


_CPU, _GPU, _FPGA, _NPU, _DML = 0, 1, 2, 3, 4

# onnxruntime's kind of device and, where the name says it, the vendor.
_NAMED = {
    "cpu": (_CPU, OrtDeviceVendorId.NONE),
    "cuda": (_GPU, OrtDeviceVendorId.NVIDIA),
    "dml": (_DML, OrtDeviceVendorId.MICROSOFT),
    "cann": (_NPU, OrtDeviceVendorId.HUAWEI),
    "webgpu": (_GPU, OrtDeviceVendorId.NONE),
    "gpu": (_GPU, OrtDeviceVendorId.NONE),
    "npu": (_NPU, OrtDeviceVendorId.NONE),
}


class OrtDevice:
    """A device by name and number, or by onnxruntime's numbers: kind, memory, vendor (may be left out), number.

    Any device can be described; values are made on the CPU alone, and InvalidArgument says so where another is asked for.
    """

    @overload
    def __init__(self, name: str = "cpu", device_id: int = 0, /) -> None: ...
    @overload
    def __init__(self, device_type: int, memory_type: int, device_id: int, /) -> None: ...
    @overload
    def __init__(self, device_type: int, memory_type: int, vendor_id: int, device_id: int, /) -> None: ...
    def __init__(self, kind: str | int = "cpu", /, *numbers: int) -> None:
        if isinstance(kind, str):
            if kind.lower() not in _NAMED:
                raise InvalidArgument(f"there is no device '{kind}', only {', '.join(sorted(_NAMED))}")
            if len(numbers) > 1:
                raise TypeError(f"a device is made of a name and a number, not of a name and {len(numbers)} numbers")
            self._type: int
            self._vendor: int
            self._type, self._vendor = _NAMED[kind.lower()]
            self._memory, self._id = 0, numbers[0] if numbers else 0
            return
        if len(numbers) not in (2, 3):
            raise TypeError(
                f"a device is made of kind, memory, vendor (may be left out) and number, not of {1 + len(numbers)} numbers"
            )
        self._type, self._memory, self._id = int(kind), int(numbers[0]), int(numbers[-1])
        self._vendor = int(numbers[1]) if len(numbers) == 3 else 0

    def __repr__(self) -> str:
        """As it is made."""
        if self._type == _CPU and self._memory == self._vendor == 0:
            return f"OrtDevice('cpu', {self._id})"
        return f"OrtDevice({self._type}, {self._memory}, {int(self._vendor)}, {self._id})"

    def __eq__(self, other: object) -> bool:
        """Whether all numbers are the same."""
        return isinstance(other, OrtDevice) and self._numbers() == other._numbers()

    def __hash__(self) -> int:
        return hash(self._numbers())

    def _numbers(self) -> tuple[int, int, int, int]:
        return self._type, self._memory, int(self._vendor), self._id

    def _get_c_device(self) -> OrtDevice:
        """The device itself, which is onnxruntime's inner device as well."""
        return self

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """The device of this name; InvalidArgument for a name that there is not."""
        device = OrtDevice(ort_device_name, device_id)
        return device if vendor_id < 0 else OrtDevice(device._type, device._memory, vendor_id, device_id)

    @staticmethod
    def cpu() -> int:
        """0: onnxruntime's number of the CPU."""
        return _CPU

    @staticmethod
    def gpu() -> int:
        """1: onnxruntime's number of GPUs."""
        return _GPU

    @staticmethod
    def cuda() -> int:
        """1: onnxruntime's number of GPUs."""
        return _GPU

    @staticmethod
    def webgpu() -> int:
        """1: onnxruntime's number of GPUs."""
        return _GPU

    @staticmethod
    def fpga() -> int:
        """2: onnxruntime's number of FPGAs."""
        return _FPGA

    @staticmethod
    def npu() -> int:
        """3: onnxruntime's number of NPUs."""
        return _NPU

    @staticmethod
    def cann() -> int:
        """3: onnxruntime's number of NPUs."""
        return _NPU

    @staticmethod
    def dml() -> int:
        """4: onnxruntime's number of DirectML's devices."""
        return _DML

    @staticmethod
    def default_memory() -> int:
        """0: onnxruntime's number of ordinary memory."""
        return 0

    def device_id(self) -> int:
        """The number that the device was made with."""
        return self._id

    def device_type(self) -> int:
        """The kind of device in onnxruntime's numbers; 0 is a CPU."""
        return self._type

    def device_vendor_id(self) -> int:
        """The vendor's number; 0 for no vendor in particular."""
        return self._vendor

    def vendor_id(self) -> int:
        """The vendor's number; 0 for no vendor in particular."""
        return self._vendor

    def device_mem_type(self) -> int:
        """The kind of memory in onnxruntime's numbers; 0 is ordinary memory."""
        return self._memory

    def mem_type(self) -> int:
        """The kind of memory in onnxruntime's numbers; 0 is ordinary memory."""
        return self._memory


def check_is_cpu(device: str | OrtDevice) -> None:
    """InvalidArgument where values are asked for on any device but the CPU."""
    if isinstance(device, OrtDevice):
        if device.device_type() != _CPU:
            raise InvalidArgument(f"values can be on the CPU alone, not on {device!r}")
    elif str(device).lower() != "cpu":
        raise InvalidArgument(f"there is no device '{device}', only 'cpu'")


class OrtMemoryInfo:
    """Where memory is and how it is allocated; RuntimeError for a name other than "Cpu"."""

    def __init__(self, name: str, allocator_type: OrtAllocatorType, device_id: int, mem_type: OrtMemType, /) -> None:
        if name != "Cpu":
            raise RuntimeError(f"there is memory of the device 'Cpu', not of '{name}': try OrtMemoryInfo.create_v2")
        self._name = name
        self._allocator_type = OrtAllocatorType(allocator_type)
        self._device_id = int(device_id)
        self._mem_type = OrtMemType(mem_type)
        self._device_type = OrtMemoryInfoDeviceType.CPU
        self._vendor_id = 0
        self._device_mem_type = OrtDeviceMemoryType.DEFAULT

    @staticmethod
    def create_v2(
        name: str,
        device_type: OrtMemoryInfoDeviceType,
        vendor_id: int,
        device_id: int,
        device_mem_type: OrtDeviceMemoryType,
        alignment: int,
        allocator_type: OrtAllocatorType,
        /,
    ) -> OrtMemoryInfo:
        """Describes memory of any device, under any name."""
        info = OrtMemoryInfo("Cpu", allocator_type, device_id, OrtMemType.DEFAULT)
        info._name = str(name)
        info._device_type = OrtMemoryInfoDeviceType(device_type)
        info._vendor_id = int(vendor_id)
        info._device_mem_type = OrtDeviceMemoryType(device_mem_type)
        return info

    def _device(self) -> OrtDevice:
        """The device that the memory is on."""
        return OrtDevice(int(self._device_type), int(self._device_mem_type), self._vendor_id, self._device_id)

    def __repr__(self) -> str:
        """Name, allocator and number of the device."""
        return f"<treadle.OrtMemoryInfo {self._name} {self._allocator_type.name}, device {self._device_id}>"

    @property
    def name(self) -> str:
        """The name that the memory was described by."""
        return self._name

    @property
    def device_id(self) -> int:
        """The number of the device."""
        return self._device_id

    @property
    def mem_type(self) -> OrtMemType:
        """What the memory is for."""
        return self._mem_type

    @property
    def allocator_type(self) -> OrtAllocatorType:
        """How the memory is allocated."""
        return self._allocator_type

    @property
    def device_mem_type(self) -> OrtDeviceMemoryType:
        """Whether the CPU reaches the memory of another device."""
        return self._device_mem_type

    @property
    def device_vendor_id(self) -> int:
        """The number of the device's vendor; 0 for no vendor in particular."""
        return self._vendor_id


def cpu_memory() -> OrtMemoryInfo:
    """Where all inputs and outputs are."""
    return OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, OrtMemType.DEFAULT)


class OrtArenaCfg:
    """Sizes of an arena, by position (the first four) or in a dict. They are kept, and nothing is allocated by them."""

    max_mem: int
    arena_extend_strategy: int
    initial_chunk_size_bytes: int
    max_dead_bytes_per_chunk: int
    initial_growth_chunk_size_bytes: int
    max_power_of_two_extend_bytes: int

    # In order. 0 bytes: no limit of memory; -1: the allocator's own choice.
    _DEFAULTS = {
        "max_mem": 0,
        "arena_extend_strategy": -1,
        "initial_chunk_size_bytes": -1,
        "max_dead_bytes_per_chunk": -1,
        "initial_growth_chunk_size_bytes": -1,
        "max_power_of_two_extend_bytes": -1,
    }

    def __init__(self, *sizes: int | Mapping[str, int]) -> None:
        given: dict[str, Any]
        if len(sizes) == 1 and isinstance(sizes[0], Mapping):
            given = dict(sizes[0])
        elif len(sizes) == 4:
            given = dict(zip(self._DEFAULTS, sizes, strict=False))
        else:
            raise TypeError(f"an OrtArenaCfg is made of four sizes or of a dict, not of {len(sizes)} values")
        for name in given:
            if name not in self._DEFAULTS:
                raise RuntimeError(f"Invalid OrtArenaCfg option: {name} (it has: {', '.join(self._DEFAULTS)})")
        for name, default in self._DEFAULTS.items():
            setattr(self, name, int(given.get(name, default)))

    def __repr__(self) -> str:
        """All sizes by their names."""
        return f"OrtArenaCfg({ {name: getattr(self, name) for name in self._DEFAULTS} })"


class OrtHardwareDevice:
    """A piece of hardware; `get_hardware_devices` gives the one that there is."""

    def __init__(self, vendor: str, vendor_id: int) -> None:
        self.type = OrtHardwareDeviceType.CPU
        self.vendor = vendor
        self.vendor_id = vendor_id
        self.device_id = 0
        self.metadata: dict[str, str] = {}

    def __repr__(self) -> str:
        """Kind and vendor."""
        return f"<treadle.OrtHardwareDevice {self.type.name} {self.vendor}>"


class OrtEpDevice:
    """A provider on a piece of hardware; `get_ep_devices` gives the one that there is."""

    def __init__(self, device: OrtHardwareDevice) -> None:
        self.device = device
        self.ep_name = "CPUExecutionProvider"
        self.ep_vendor = "treadle"
        self.ep_metadata: dict[str, str] = {"version": _core.version()}
        self.ep_options: dict[str, str] = {}

    def __repr__(self) -> str:
        """Provider and hardware."""
        return f"<treadle.OrtEpDevice {self.ep_name} on {self.device!r}>"

    def memory_info(self, memory_type: OrtDeviceMemoryType, /) -> OrtMemoryInfo | None:
        """The description of the CPU's memory; None for another kind of memory."""
        return cpu_memory() if memory_type == OrtDeviceMemoryType.DEFAULT else None

    def create_sync_stream(self) -> None:
        """Raises NotImplemented: runs on the CPU have no streams of a device."""
        raise NotSupported("the CPU has no streams to wait for: runs are over when they return")


class OrtEpAssignedNode(NamedTuple):
    """A node of a model, as a provider runs it."""

    name: str
    domain: str
    op_type: str


class OrtEpAssignedSubgraph(NamedTuple):
    """Nodes that a provider runs together."""

    ep_name: str
    nodes: tuple[OrtEpAssignedNode, ...]

    def get_nodes(self) -> list[OrtEpAssignedNode]:
        """The nodes as a list."""
        return list(self.nodes)


# For each vendor in /proc/cpuinfo, its name and its number on PCI.
_VENDORS = {"AuthenticAMD": ("AMD", 0x1022), "GenuineIntel": ("Intel", 0x8086)}


@functools.cache
def _the_device() -> OrtEpDevice:
    vendor = ("", 0)
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("vendor_id"):
                    word = line.partition(":")[2].strip()
                    vendor = _VENDORS.get(word, (word, 0))
                    break
    except OSError:
        pass  # the vendor stays unknown
    return OrtEpDevice(OrtHardwareDevice(*vendor))


def get_ep_devices() -> list[OrtEpDevice]:
    """The provider of the CPU on this machine's CPU."""
    return [_the_device()]


def get_hardware_devices() -> list[OrtHardwareDevice]:
    """This machine's CPU."""
    return [_the_device().device]


def create_and_register_allocator(memory_info: OrtMemoryInfo, arena_cfg: OrtArenaCfg | None = None, /) -> None:
    """Checks its arguments. treadle's sessions plan their memory themselves."""
    if not isinstance(memory_info, OrtMemoryInfo):
        raise TypeError(f"memory_info is an OrtMemoryInfo, not a {type(memory_info).__name__}")
    if memory_info._device_type != OrtMemoryInfoDeviceType.CPU:
        raise InvalidArgument(f"allocators are of the CPU's memory, not of {memory_info!r}")
    if arena_cfg is not None and not isinstance(arena_cfg, OrtArenaCfg):
        raise TypeError(f"arena_cfg is an OrtArenaCfg or None, not a {type(arena_cfg).__name__}")


def create_and_register_allocator_v2(
    provider: str, memory_info: OrtMemoryInfo, options: Mapping[str, str], arena_cfg: OrtArenaCfg | None = None, /
) -> None:
    """`create_and_register_allocator` of a provider; InvalidArgument for any but "CPUExecutionProvider"."""
    if provider != "CPUExecutionProvider":
        raise InvalidArgument(f"there is no provider '{provider}', only 'CPUExecutionProvider'")
    create_and_register_allocator(memory_info, arena_cfg)


def register_execution_provider_library(name: str, path: str) -> None:
    """Raises NotImplemented: providers made for onnxruntime cannot be loaded."""
    raise NotSupported(f"{path}: the execution provider '{name}' is made for onnxruntime and cannot be loaded")


def unregister_execution_provider_library(name: str) -> None:
    """Raises Fail: no library of a provider is ever loaded."""
    raise Fail(f"no library of an execution provider '{name}' is registered")
