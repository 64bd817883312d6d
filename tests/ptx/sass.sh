#!/usr/bin/env bash
# sass.sh: the machine code of the GPU's back end, which only ptxas knows, is read for what PTX cannot show: local memory, steps of
# recurrent layers without tensor cores, with products by hand, long divisions, or with a whole cache thrown away, and kernels that no such
# GPU can run. The same code with such a fault put in must be refused. B: the build; CUDA_ARCHS. The disassembler is the toolkit's or PyPI's,
# in a folder beside other caches. A part of `make nightly`.
set -u
library=$B/libweft_cuda.so tools=${XDG_CACHE_HOME:-$HOME/.cache}/weft/sass
skipped() { echo "skipped: the machine code of GPUs: $1"; exit 0; }
[ -f "$library" ] || skipped "no $library"
disassembler() {                        # on the path, of the toolkit, or installed
    local found
    found=$(command -v cuobjdump || ls /usr/local/cuda/bin/cuobjdump "$tools"/lib/python*/site-packages/nvidia/*/bin/cuobjdump 2>/dev/null | head -n 1)
    [ -n "$found" ] && echo "$found"
}
if ! disassembler >/dev/null; then
    { python3 -m venv "$tools" && "$tools/bin/pip" install -q nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm; } >/dev/null 2>&1
fi
cuobjdump=$(disassembler) || skipped "no cuobjdump, and PyPI's nvidia-cuda-cuobjdump cannot be installed"
PATH=$(dirname "$cuobjdump"):$PATH
read_by() { python3 -B "$(dirname "$0")/sass.py" "$@"; }

code=$(mktemp) good=0 all=0
trap 'rm -f "$code"' EXIT
says() {                                # ok|FAIL WHAT
    all=$((all + 1))
    if [ "$1" = ok ]; then good=$((good + 1)); fi
    printf '  %-4s  %s\n' "$1" "$2"
}
planted() {                             # WHAT SED WORDS
    if sed -E "$2" "$code" | read_by "$arch" | grep "$3" >/dev/null; then says ok "$1"; else says FAIL "$1 is not seen"; fi
}
for arch in ${CUDA_ARCHS:-80 90 100 120}; do
    cuobjdump -sass -arch "sm_$arch" "$library" >"$code" || { says FAIL "sm_$arch is not read"; continue; }
    if said=$(read_by "$arch" <"$code"); then says ok "sm_$arch: $said"; else says FAIL "sm_$arch"; printf '%s\n' "$said" | head -n 40 | sed 's/^/        | /'; fi
    [ "$arch" = 90 ] || continue
    planted "a sum that is kept in local memory"         's/ LDS(\.[0-9]+)? R/ LDL R/'                 ': local memory'
    planted "a product by hand"                          's/ HMMA\.[A-Z0-9.]+ R/ FFMA R/'               'no loop over steps with tensor cores'
    planted "some products by hand"                      's/ (LOP3|IADD3|FADD|FMUL)[A-Z0-9.]* / FFMA /'  ' FFMA in a step'
    planted "a cache that is thrown away in each step"   's/ MUFU\.EX2 .*;/ CCTL.IVALL ;/'               'in a step and in no wait'
    planted "a long division in each step"               's/ MUFU\.RCP / I2F.U64.RP /'                  'are divided in a step'
    arch=80                             # an H100's code in an A100's place: it has clusters, and no groups
    planted "code for GPUs that cannot run it"           ''                                            '_cluster.*: code that no such GPU can run'
    planted "no code for GPUs that could"                ''                                            '_group.*: no loop over steps'
    arch=90
done
echo "$good of $all checks of the GPU's machine code hold"
[ "$good" = "$all" ]
