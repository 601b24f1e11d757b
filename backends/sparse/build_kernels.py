"""How the C kernels are compiled into the module ``flambeau_sparse._kernels``, and what Python sees of them.

Environment: FLAMBEAU_CPU_CFLAGS adds compiler flags, FLAMBEAU_CPU_SANITIZE=1 builds with AddressSanitizer and
UBSan, as for the CPU plug-in, whose process these kernels share.
"""

from __future__ import annotations

import os

from cffi import FFI
from setuptools import Extension

# No -ffast-math: NaN, infinities and signed zeros keep their meaning.  Integers wrap around.
FLAGS = ["-std=gnu11", "-O3", "-fopenmp", "-fno-math-errno", "-fno-trapping-math", "-fwrapv", "-Wall", "-Wextra"]
SANITIZE = ["-fsanitize=address,undefined", "-fno-omit-frame-pointer", "-g", "-O1"]  # the last -O wins
#: C types by dtype; kernels are compiled for each.
TYPES = {
    "bool": "_Bool", "uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t",
    "float32": "float", "float64": "double", "complex64": "float _Complex", "complex128": "double _Complex",
}  # fmt: skip

INTERFACE = """
// How many threads kernels use: at first as many as OpenMP has, and one in a forked child.
void fs_set_threads(int count);
int fs_get_threads(void);

// places[i]: indices[0][i], indices[1][i], ... as one number, the last dimension fastest; indices are (dims, n).
// Returns the first column that is outside of the sizes, or n.
int64_t fs_places(const int64_t *indices, int64_t dims, int64_t n, const int64_t *sizes, int64_t *places);

// The stable order that sorts n numbers, none negative; 0 if there was no memory for it.
int fs_order(const int64_t *numbers, int64_t n, int64_t *order);

// Where in that order a run of equal numbers starts, and at last n: count + 1 numbers.  Returns count.
int64_t fs_runs(const int64_t *numbers, const int64_t *order, int64_t n, int64_t *starts);

// found[i]: where among n sorted numbers wanted[i] is, or -1.
void fs_find(const int64_t *sorted, int64_t n, const int64_t *wanted, int64_t count, int64_t *found);

// Merges rising numbers, each once; from_a[i] and from_b[i]: where the i-th of the result is in each, or -1; they have
// room for n + m.  Returns how many there are.
int64_t fs_merge(const int64_t *a, int64_t n, const int64_t *b, int64_t m, int64_t *from_a, int64_t *from_b);

// The columns of indices (dims, n) and (dims, m) at merged places: (dims, count).
void fs_merged_indices(const int64_t *a, int64_t n, const int64_t *from_a, const int64_t *b, int64_t m,
    const int64_t *from_b, int64_t dims, int64_t count, int64_t *out);

// out[places[i]] folds with abs(values[i]) ** p; of each value's kept x inner elements, the inner ones are folded too.
// p of 0 counts what is not zero, infinity gives the largest.
void fs_fold_float32(float *out, int64_t count, const int64_t *places, const float *values, int64_t n, int64_t kept,
    int64_t inner, double p);
void fs_fold_float64(double *out, int64_t count, const int64_t *places, const double *values, int64_t n, int64_t kept,
    int64_t inner, double p);
"""
# Dense operands have a stride for each of their two dimensions.
TYPED_INTERFACE = """
// out[r] = sum of values[order[k]] over run r; each value has width elements.
void fs_sum_runs_{name}(const {T} *values, const int64_t *order, const int64_t *starts, int64_t runs, int64_t width,
    {T} *out);

// out[i] = a[from_a[i]] + b[from_b[i]], without those of -1; each value has width elements.
void fs_add_merged_{name}(const {T} *a, const int64_t *from_a, const {T} *b, const int64_t *from_b, int64_t n,
    int64_t width, {T} *out);

// out[places[i]] += values[i], in this order; places are below count.
void fs_scatter_{name}({T} *out, int64_t count, const int64_t *places, const {T} *values, int64_t n, int64_t width);

// out[rows[i]] += values[i] * dense[columns[i]], in this order; rows are below count.
void fs_spmm_{name}(const int64_t *rows, const int64_t *columns, const {T} *values, int64_t n, const {T} *dense,
    int64_t down, int64_t across, int64_t count, int64_t width, {T} *out);

// out[k] = sum over j of a[rows[k]][j] * b[j][columns[k]].
void fs_sddmm_{name}(const int64_t *rows, const int64_t *columns, int64_t n, const {T} *a, int64_t a_down,
    int64_t a_across, const {T} *b, int64_t b_down, int64_t b_across, int64_t inner, {T} *out);
"""


def extension() -> Extension:
    ffi = FFI()
    text = INTERFACE + "".join(TYPED_INTERFACE.format(name=name, T=kind) for name, kind in TYPES.items())
    ffi.cdef(text)
    extra = os.environ.get("FLAMBEAU_CPU_CFLAGS", "").split()
    if os.environ.get("FLAMBEAU_CPU_SANITIZE"):
        extra += SANITIZE
    ffi.set_source(
        "flambeau_sparse._kernels", "#include <stdint.h>\n" + text, sources=["flambeau_sparse/kernels.c"],
        define_macros=[("FS_TYPES", " ".join(f"X({name}, {kind})" for name, kind in TYPES.items()))],
        extra_compile_args=[*FLAGS, *extra], extra_link_args=["-fopenmp", *extra],
    )  # fmt: skip
    return ffi.distutils_extension(tmpdir="build/cffi", verbose=False)
