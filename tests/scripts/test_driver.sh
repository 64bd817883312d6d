#!/usr/bin/env bash
# test_driver.sh    tests weft_open with a missing driver, one that fails and one that reports GPUs. Only the last opens the plug-in and cuBLAS.
# The driver is a small library of this test, the plug-in is the emulation. B is the build.
set -u
. "$(dirname "$0")/script.sh"
[ -f "$build/emu/libweft_cuda.so" ] || make --no-print-directory -C "$root" "$build/emu/libweft_cuda.so" >/dev/null || exit 1

# ---- a driver that returns DRIVER: an error of cuInit, or 0 and the number of GPUs
mkdir -p driver with/weft
cat >driver.c <<'C'
#include <stdlib.h>
static int number_at(int at) { const char *s = getenv("DRIVER"); return s ? atoi(s + at) : 0; }
int cuInit(unsigned flags) { (void)flags; return number_at(0); }
int cuDeviceGetCount(int *n) { *n = number_at(2); return 0; }
int cuGetErrorString(int error, const char **text) { *text = "no CUDA-capable device is detected"; return error != 100; }
C
cat >program.c <<'C'
#include <stdio.h>
#include <string.h>
#include "weft.h"
int main(int argc, char **argv)
{
    char line[4096];
    weft *w = weft_open(&(weft_opts){ .device = argc > 1 && !strcmp(argv[1], "cuda") ? WEFT_CUDA : WEFT_BEST });
    printf("%s: %s\n", weft_ok(w) ? weft_device_name(w) : "none", weft_error_message(w));
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f))
        if (strstr(line, "libweft_cuda")) {
            puts("the plug-in is loaded");
            break;
        }
    fclose(f);
    f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "VmHWM:", 6))
            fputs(line, stdout);
    fclose(f);
    weft_close(w);
    return 0;
}
C
sanitize=; case ${V:-} in asan|dasan) sanitize=-fsanitize=address,undefined ;; esac
real= f64=; case ${V:-} in double|dasan) real=-DWEFT_DOUBLE f64=_f64 ;; esac
${CC:-cc} -shared -fPIC -Wl,-soname,libcuda.so.1 -o driver/libcuda.so.1 driver.c || exit 1
# shellcheck disable=SC2046
${CC:-cc} $sanitize $real -I"$root" -o with/program program.c "$build/libweft.a" $(pkg-config --cflags --libs hdf5 zlib) -ldl -lm -lpthread || exit 1
cp "$build/emu/libweft_cuda.so" "with/weft/libweft_cuda$f64.so"
unset WEFT_BACKEND_PATH WEFT_DEVICE WEFT_LOG

asks() { DRIVER=$1 LD_LIBRARY_PATH=$PWD/driver WEFT_LOG=1 with/program "$2" >output 2>&1; }     # DRIVER DEVICE
check "a driver with a GPU: the plug-in is opened" eval 'asks 0,1 best; grep -q "^cuda: " output && grep -q "plug-in is loaded" output'
check "a driver without GPUs: the CPU" eval 'asks 100,1 best; grep -Eq "^[a-z0-9]+: $" output && ! grep -q "^cuda" output && ! grep -q "plug-in is loaded" output'
check "the log has the reason" grep -q "^weft: open: no CUDA back end: the NVIDIA driver failed in cuInit: no CUDA-capable device is detected (100)" output
check "an error that the driver has no text for" eval 'asks 999,1 best; grep -q "in cuInit: an error without a text (999)" output'
check "a driver with no GPU for this process" eval 'asks 0,0 cuda; grep -q "^none: open: no CUDA back end: the NVIDIA driver has no GPU for this process" output'
check "nothing is opened for it" eval '! grep -q "plug-in is loaded" output'
if with/program cuda | grep -q 'no NVIDIA driver'; then
    check "no driver: WEFT_CUDA reports what is missing" eval 'with/program cuda | grep -q "^none: open: no CUDA back end: no NVIDIA driver: libcuda.so.1: "'
    check "no driver: the CPU, and no plug-in" eval 'WEFT_LOG=1 with/program best >output 2>&1; grep -Eq "^[a-z0-9]+: $" output && ! grep -q "plug-in is loaded" output'
    if [ -z "${V:-}" ]; then check "no driver: less than 20 MB" eval "awk '/VmHWM/ { seen = \$2 } END { exit !(seen > 1000 && seen < 20000) }' output"; fi
    check "no driver, but a plug-in that the environment names" eval 'WEFT_BACKEND_PATH=$PWD/with/weft with/program cuda | grep -q "^cuda: "'
fi
finish "the driver"
