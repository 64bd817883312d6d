#!/usr/bin/env bash
# emulated_cpu.sh [UNIT[:FILTER]...]: runs test programs on a CPU that this machine does not have, from the root of the tree:
#
#     B=build KERNEL=vmlinuz bash tests/emulated_cpu.sh                          the tests of the CPU's kernels, with AVX-512
#     B=build KERNEL=vmlinuz bash tests/emulated_cpu.sh test_ops:'*matmul*'
#
# Bochs emulates a whole PC, whose CPU has AVX-512, and boots a Linux from memory: busybox, the programs with their shared libraries,
# tests/golden. It is for bits, not for times, and no part of `make test`: tens of millions of instructions a second, 20 s of a core to boot,
# minutes of it for a program of tests. Ends with "N of M programs hold".
#
# Wants Debian's bochs, bochs-term (its rfb display needs no screen), bochsbios, vgabios, isolinux, syslinux-common, xorriso, busybox-static
# and cpio; and KERNEL, a Linux with its serial port built in, else this machine's own: the package on which linux-image-cloud-amd64
# depends has one in boot/ (apt-get download, dpkg-deb -x).
#
# BOCHS=program  SCREEN=its display  MODEL=its CPU  TABLES="ref avx512"  LIMIT=seconds  MEMORY=megabytes  APPEND=more for the kernel
# Matrix tiles (AMX) are in Bochs 3.0, but not what Linux wants of a CPU before it lends them to a program (XFD); with a Bochs that has
# it, TABLES="ref amx". What the machine says is in $B/emulated_cpu/serial, what Bochs says in log.
set -u
. tests/units.sh
B=$(realpath -m "${B:-build}")
kernel=${KERNEL:-$(find /boot -name 'vmlinuz-*' 2>/dev/null | sort -V | tail -n 1)}
hertz=100000000                         # of the clock, which counts instructions
dir=$B/emulated_cpu
bits='test_kernel_bits:!(openblas_multiplies)'                # OpenBLAS is not there
[ $# -gt 0 ] || set -- test_vector test_kernels test_kernels_update test_recur test_recur_layer test_attention "$bits"

need() { for f; do [ -e "$f" ] || { echo "emulated_cpu.sh: $f is missing"; exit 1; }; done; }
with_libraries() {                      # PROGRAM: into t/, its libraries to where they are here
    local l
    cp "$1" "$dir/root/t/"
    ldd "$1" | grep -o '/[^ )]*' | while read -r l; do mkdir -p "$dir/root${l%/*}"; cp -Lu "$l" "$dir/root$l"; done
}
steps() {                               # UNIT[:FILTER]...: the commands of the emulated machine
    local t program filter
    echo '#!/bin/sh'
    echo 'mount -t proc none /proc; mount -t sysfs none /sys; mount -t devtmpfs none /dev; mkdir -p /dev/shm; mount -t tmpfs none /dev/shm'
    echo 'ifconfig lo up; exec </dev/null >/dev/ttyS0 2>&1; cd /t'
    echo "export HOME=/t WEFT_TESTS=/t/tests WEFT_SMALL=1 WEFT_TABLES='${TABLES:-ref avx512}'"
    for t; do
        program=$(program_of "${t%%:*}") filter=; case $t in *:*) filter=${t#*:} ;; esac
        echo "echo '== $t'; ./${program##*/} --jobs 1 --verbose --color=never --short-filename --encoding=UTF-8 --filter '$(filter_of "${t%%:*}" "$filter")'; echo \"== $t ends with \$?\""
    done
    echo 'echo "== all"; sleep 1; poweroff -f'
}

need "${kernel:-KERNEL=vmlinuz}" /bin/busybox /usr/lib/ISOLINUX/isolinux.bin
for t; do need "$(program_of "${t%%:*}")"; done
rm -rf "$dir"
mkdir -p "$dir"/{cd,root/{bin,proc,sys,dev,tmp,t/tests}}
for t; do with_libraries "$(program_of "${t%%:*}")"; done
cp -r tests/golden "$dir/root/t/tests/"
cp /bin/busybox "$dir/root/bin/"
for a in sh mount mkdir ifconfig sleep poweroff; do ln -s busybox "$dir/root/bin/$a"; done
steps "$@" >"$dir/root/init"
chmod +x "$dir/root/init"

cp "$kernel" "$dir/cd/linux"
cp /usr/lib/ISOLINUX/isolinux.bin /usr/lib/syslinux/modules/bios/ldlinux.c32 "$dir/cd/"
(cd "$dir/root" && find . | cpio -o -H newc --quiet) | gzip -1 >"$dir/cd/root"
cat >"$dir/cd/isolinux.cfg" <<END
default linux
label linux
kernel linux
append initrd=root console=ttyS0,115200 quiet tsc_early_khz=$((hertz / 1000)) lpj=$((hertz / 250)) tsc=reliable hpet=disable mitigations=off nokaslr audit=0 security=none cryptomgr.notests panic=0 ${APPEND:-}
END
xorriso -as mkisofs -quiet -o "$dir/cd.iso" -b isolinux.bin -c boot.cat -no-emul-boot -boot-load-size 4 -boot-info-table "$dir/cd" \
    2>"$dir/xorriso" || { cat "$dir/xorriso"; exit 1; }
cat >"$dir/bochsrc" <<END
display_library: ${SCREEN:-rfb, options=\"timeout=0\"}
memory: guest=${MEMORY:-1024}, host=${MEMORY:-1024}
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/bochs/VGABIOS-lgpl-latest
cpu: model=${MODEL:-corei7_skylake_x}, count=1, ips=$hertz, ignore_bad_msrs=1
clock: sync=none
ata0-master: type=cdrom, path=$dir/cd.iso, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev=$dir/serial
log: $dir/log
panic: action=fatal
END
echo c | timeout "${LIMIT:-7200}" "${BOCHS:-bochs}" -q -f "$dir/bochsrc" >"$dir/out" 2>&1 &             # c: to a Bochs with its debugger
bochs=$!
while kill -0 $bochs 2>/dev/null && ! grep -qs '^== all\|end Kernel panic' "$dir/serial"; do sleep 1; done
kill $bochs 2>/dev/null
tr -d '\r' <"$dir/serial"
good=$(grep -c '^== .* ends with 0' "$dir/serial")
echo "$good of $# programs hold"
[ "$good" = $# ]
