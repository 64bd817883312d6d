#!/usr/bin/env python3
"""Writes the golden files of tests/io/test_npz.c with numpy (2.4.6).

    python3 tests/interchange/numpy_files.py tests/golden/interchange"""
import os
import sys
import zipfile

import numpy

folder = sys.argv[1]


def path(name):
    return os.path.join(folder, name)


numbers = numpy.arange(6).reshape(2, 3)
arrays = {t.replace(">", "big_").replace("<", ""): numbers.astype(t) for t in (
    "<f2", "<f4", "<f8", "i1", "<i2", "<i4", "<i8", "u1", "<u2", "<u4", "<u8", "bool",
    ">f2", ">f4", ">f8", ">i2", ">i4", ">i8", ">u2", ">u4", ">u8")}
arrays.update({"fortran": numpy.asfortranarray(numbers.astype("<f4")), "zero_dim": numpy.float64(2.5),
               "empty": numpy.zeros((0, 3)), "text": numpy.array(["ab", "c"]), "complex": numpy.zeros(2, "c8"),
               "a/b": numpy.ones(1, "<f4")})
numpy.savez(path("types.npz"), **arrays)
numpy.savez_compressed(path("packed.npz"), w=numpy.zeros((20, 20), "<f4"), b=numpy.arange(3.0))
numpy.savez(path("objects.npz"), x=numpy.array([None, {}], object))
numpy.save(path("lone.npy"), numpy.asfortranarray(numbers.astype("<f8")))
for version in (2, 3):
    with open(path(f"version{version}.npy"), "wb") as f:
        numpy.lib.format.write_array(f, numbers.astype("<f4"), version=(version, 0))

zipfile.ZIP64_LIMIT = 8                          # all sizes and offsets are in zip64 fields
numpy.savez(path("zip64.npz"), w=numbers.astype("<f4"), b=numpy.arange(3.0))
