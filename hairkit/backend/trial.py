"""A real kernel with a known answer, for a process of its own: ``trial.py cpu|cuda|vulkan``.

It prints ``HAIRKIT-PROBE ok``, and on Vulkan ``HAIRKIT-DEVICE`` with the device's name. It is a
file because Taichi reads a kernel's source from one. ``trial.py window`` opens a window that does
not show, ``trial.py display`` looks for a display as well.
"""

import contextlib
import ctypes
import os
import sys
import tempfile

os.environ["ENABLE_TAICHI_HEADER_PRINT"] = "0"

import numpy as np
import taichi as ti


@ti.kernel
def fill(value: ti.template(), count: ti.i32):
    """Do what the solver does: fields, square roots, a carried loop."""
    for i in range(64):
        carried = 1.0
        for j in range(count):
            carried = ti.sqrt(carried + i)
            value[i, j] = carried


def check(name: str) -> str:
    """Return ``ok``, or what is wrong with the answer."""
    arch = {"cpu": ti.cpu, "cuda": ti.cuda, "vulkan": ti.vulkan}[name]
    ti.init(arch=arch, enable_fallback=False, offline_cache=False, log_level=ti.INFO)
    value = ti.field(ti.f32, (64, 8))
    fill(value, 8)
    want = np.zeros((64, 8))
    carried = np.ones(64)
    for j in range(8):
        carried = np.sqrt(carried + np.arange(64))
        want[:, j] = carried
    error = float(np.abs(value.to_numpy() - want).max())
    return "ok" if error < 1e-4 else f"wrong answer, off by {error:g}"


class _Create(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("application", ctypes.c_void_p),
        ("layers", ctypes.c_uint32),
        ("layer", ctypes.c_void_p),
        ("extensions", ctypes.c_uint32),
        ("extension", ctypes.c_void_p),
    )


def vulkan_device() -> str:
    """Return the best Vulkan device's name; Taichi takes it too but does not say so."""
    vulkan = ctypes.CDLL("vulkan-1.dll" if sys.platform == "win32" else "libvulkan.so.1")
    instance, count = ctypes.c_void_p(), ctypes.c_uint32()
    if vulkan.vkCreateInstance(ctypes.byref(_Create(type=1)), None, ctypes.byref(instance)) != 0:
        return "none"
    vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), None)
    devices = (ctypes.c_void_p * count.value)()
    vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), devices)
    found = []
    for device in devices:
        # VkPhysicalDeviceProperties: four u32, the kind at byte 16, the name from byte 20.
        properties = ctypes.create_string_buffer(4096)
        vulkan.vkGetPhysicalDeviceProperties(ctypes.c_void_p(device), properties)
        kind = int.from_bytes(properties.raw[16:20], "little")
        name = properties.raw[20:276].split(b"\0")[0].decode(errors="replace")
        # 2 is a discrete GPU, 1 an integrated one, 3 a virtual one, 4 a CPU.
        found.append(({2: 0, 1: 1, 3: 2}.get(kind, 3), name))
    return min(found)[1] if found else "none"


def check_window(display: bool) -> str:
    """Return ``ok``, or what a window lacks."""
    try:
        if vulkan_device() == "none":
            return "Vulkan finds no driver"
    except OSError:
        return "there is no Vulkan loader (libvulkan)"
    if display and sys.platform.startswith("linux"):
        # GLFW would end the process; and where there is no libX11, let it try.
        name = os.environ.get("DISPLAY", "")
        if not name:
            return "there is no display (DISPLAY is not set)"
        try:
            x11 = ctypes.CDLL("libX11.so.6")
        except OSError:
            return "there is no X11 (libX11)"
        x11.XOpenDisplay.restype = ctypes.c_void_p
        if x11.XOpenDisplay(None) is None:
            return f"the display {name} cannot be opened"
    ti.init(arch=ti.cpu, offline_cache=False, log_level=ti.ERROR)
    # A window keeps notes in the current folder, which is the user's.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        window = ti.ui.Window("hairkit", (64, 48), show_window=False)
        window.get_canvas().set_image(np.full((64, 48, 3), 128, np.uint8))
        seen = window.get_image_buffer_as_numpy()
        window.destroy()
    good = seen.shape == (64, 48, 4) and abs(float(seen[..., :3].mean()) - 128 / 255) < 0.01
    return "ok" if good else "a picture did not come back as it was"


if __name__ == "__main__":
    if sys.argv[1] in ("window", "display"):
        print("HAIRKIT-PROBE", check_window(sys.argv[1] == "display"), flush=True)
    else:
        if sys.argv[1] == "vulkan":
            print("HAIRKIT-DEVICE", vulkan_device(), flush=True)
        print("HAIRKIT-PROBE", check(sys.argv[1]), flush=True)
