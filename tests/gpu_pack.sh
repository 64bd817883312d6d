#!/usr/bin/env bash
# gpu_pack.sh    builds everything that tests/gpu_first.sh runs on a machine with a GPU and packs it, without symbols, into
# build/carry/weft.tar.xz. Run it from the root of the tree on a machine with nvcc; it needs no GPU. The machine with the GPU
# gets the tree and build/carry. It needs a driver, cuBLAS and Python, but no compiler and no other library.
#
# CUDA_ARCHS=90: the architecture to build for. BUILD=build/gpu: the folder to build in. CARRY=build/carry: the folder to fill.
set -eu -o pipefail
cd "$(dirname "$0")/.."
. tests/gpu_units.sh
B=${BUILD:-build/gpu} arch=${CUDA_ARCHS:-90} carry=${CARRY:-build/carry}
PATH=$PATH:/usr/local/cuda/bin
pack=$B/pack
programs=$(for unit in $gpu_units; do program_of "$unit"; done | sort -u)
make BUILD="$B" CUDA_ARCHS="$arch" "$B/libweft_cuda.so" "$B/weft" "$B/bench/weft_bench" "$B/tests/golden" $programs
nvcc -std=c++17 -O2 -I. -arch="sm_$arch" -o "$B/gpu_micro" tests/cuda/gpu_micro.cu -lcublas

rm -rf "$pack"
mkdir -p "$pack/bin" "$pack/tests" "$pack/lib" "$carry"
cp "$B/weft" "$B/bench/weft_bench" "$B/gpu_micro" "$B/tests/golden" "$pack/bin"
cp $programs "$B/tests/libweft_inside.so" "$pack/tests"         # the programs find the library next to them
cp "$B/libweft_cuda.so" "$pack"
strip --strip-unneeded "$pack"/bin/* "$pack"/tests/* "$pack/libweft_cuda.so"
# All shared libraries except those of the compiler, of the C library and of CUDA.
common='/(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc[+][+]|libresolv|libcublas.*|libweft_inside|ld-linux.*)[.]so'
ldd "$pack"/bin/* "$pack"/tests/* | awk '$3 ~ "^/" { print $3 }' | sort -u | { grep -vE "$common" || true; } | xargs -r cp -Lt "$pack/lib"
[ -z "$(ls "$pack/lib")" ] || strip --strip-unneeded "$pack"/lib/*
tar -C "$pack" -cf - . | xz -"${XZ_LEVEL:-6}" -T0 >"$carry/weft.tar.xz"
du -sm "$pack" "$carry"
