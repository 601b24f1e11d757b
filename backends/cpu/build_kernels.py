"""How the C kernels are compiled into the module ``flambeau_cpu._kernels``.

Every family file is compiled once per instruction set with the macro FB_ISA
naming it; the registry picks one set at run time, so a single binary serves
baseline x86-64, AVX2 and AVX-512 machines.  Other architectures get the
baseline only.

Environment: FLAMBEAU_CPU_CFLAGS adds compiler flags, FLAMBEAU_CPU_SANITIZE=1
builds with AddressSanitizer and UBSan.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zlib import crc32

from cffi import FFI
from setuptools import Extension
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent
KERNELS = Path("flambeau_cpu/kernels")
SHARED = ("registry", "driver", "memory")
X86 = platform.machine().lower() in ("x86_64", "amd64")
SETS = {
    "baseline": ["-O2"],  # for portability; not worth the time that vectorising takes
    "avx2": ["-O3", "-mavx2", "-mfma", "-mf16c", "-mbmi", "-mbmi2"],
    "avx512": [
        "-O3",
        "-mavx512f",
        "-mavx512bw",
        "-mavx512dq",
        "-mavx512vl",
        "-mfma",
        "-mf16c",
        "-mbmi2",
        "-mprefer-vector-width=512",
    ],
}
# No -ffast-math: NaN, infinities and signed zeros keep their meaning.
FLAGS = [
    "-std=gnu11",
    "-fopenmp",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=fast",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
]
SANITIZE = [
    "-fsanitize=address,undefined",
    "-fno-omit-frame-pointer",
    "-g",
    "-O1",
]  # the last -O wins

NEEDS_COMPILER = """
flambeau-cpu compiles its kernels and found no C compiler.
Install one (Debian and Ubuntu: apt-get install gcc python3-dev; Fedora: dnf install gcc python3-devel;
macOS: xcode-select --install), or name it: CC=/path/to/cc.
"""


#: What compiled code calls to ask for an address, without a Python call in between.
ADDRESS = """
static void *address_of_handle(PyObject *handle, PyObject *void_pointer)
{
    return _cffi_to_c_pointer(handle, (struct _cffi_ctypedescr *)void_pointer);
}
static void *fb_address_of_handle(void) { return (void *)address_of_handle; }
"""


def families() -> dict[str, list[str]]:
    """The files that end with a table of kernels, and the instruction sets each is compiled for.

    A file that wider vectors do not help says ``FB_SETS: baseline avx2`` and saves its compile time.
    """
    found = {}
    for path in sorted((ROOT / KERNELS).glob("*.c")):
        text = path.read_text()
        if "FB_FAMILY(" in text:
            named = re.search(r"FB_SETS:((?: \w+)+)", text)
            wanted = named[1].split() if named else list(SETS)
            found[path.stem] = [isa for isa in SETS if isa in wanted and (X86 or isa == "baseline")]
    return found


def extension() -> Extension:
    ffi = FFI()
    ffi.cdef((ROOT / "flambeau_cpu/interface.h").read_text())
    ffi.set_source("flambeau_cpu._kernels", f'#include "registry.h"\n{ADDRESS}', include_dirs=[str(KERNELS)])
    return ffi.distutils_extension(tmpdir="build/cffi", verbose=False)


class BuildKernels(build_ext):
    """build_ext that compiles (file, instruction set) pairs side by side."""

    def build_extension(self, ext: Extension) -> None:
        if not shutil.which(os.environ.get("CC", "cc").split()[0]):
            raise SystemExit(NEEDS_COMPILER)
        extra = os.environ.get("FLAMBEAU_CPU_CFLAGS", "").split()
        if os.environ.get("FLAMBEAU_CPU_SANITIZE"):
            extra += SANITIZE
        sets = SETS if X86 else {"baseline": ["-O3"]}
        define = [("FB_X86", "1")] if X86 else []
        listed = [("FB_FAMILIES", " ".join(f"X({name}, {sets[-1]})" for name, sets in families().items()))]
        # The slowest first, so that no core idles at the end.
        jobs = sorted(
            ((name, isa) for name, isas in families().items() for isa in isas),
            key=lambda job: -(ROOT / KERNELS / f"{job[0]}.c").stat().st_size,
        )
        jobs += [(name, "baseline") for name in SHARED]

        newest_header = max(path.stat().st_mtime for path in (ROOT / KERNELS).glob("*.h"))

        def build(job: tuple[str, str]) -> list[str]:
            name, isa = job
            flags = [*FLAGS, *sets[isa], *extra]
            # Other flags have a folder of their own, so that objects never mix.
            folder = Path(self.build_temp) / f"{isa}-{crc32(' '.join(flags).encode()):08x}"
            done = folder / KERNELS / f"{name}.o"
            source_time = max(newest_header, (ROOT / KERNELS / f"{name}.c").stat().st_mtime)
            if not self.force and name != "registry" and done.exists() and done.stat().st_mtime > source_time:
                return [str(done)]
            return self.compiler.compile(
                [str(KERNELS / f"{name}.c")],
                output_dir=str(folder),
                macros=[("FB_ISA", isa), *define, *(listed if name == "registry" else [])],
                include_dirs=[str(KERNELS)],
                extra_postargs=flags,
            )

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = [name for names in pool.map(build, jobs) for name in names]
        ext.extra_objects = ext.depends = objects
        ext.extra_compile_args = ["-O2", "-fopenmp", *extra]
        ext.extra_link_args = ["-fopenmp", *extra]
        super().build_extension(ext)
