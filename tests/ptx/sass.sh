#!/usr/bin/env bash
# sass.sh: checks the machine code of libweft_cuda.so for faults that PTX does not show: use of local memory, recurrent steps without tensor
# cores or with scalar products, long divisions or an invalidated L1 cache, and code for GPUs that cannot run it. Then plants such faults,
# which must be found. B: the build; CUDA_ARCHS. The disassembler comes from the toolkit or from PyPI. Part of `make nightly`.
set -u
library=$B/libweft_cuda.so tools=${XDG_CACHE_HOME:-$HOME/.cache}/weft/sass
skipped() { echo "skipped: the machine code of GPUs: $1"; exit 0; }
[ -f "$library" ] || skipped "no $library"
disassembler() {                        # from PATH, the toolkit, or the installed package
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
    if sed -E "$2" "$code" | read_by "$arch" | grep "$3" >/dev/null; then says ok "$1"; else says FAIL "$1 is not found"; fi
}
for arch in ${CUDA_ARCHS:-80 90 100 120}; do
    cuobjdump -sass -arch "sm_$arch" "$library" >"$code" || { says FAIL "sm_$arch is not read"; continue; }
    if said=$(read_by "$arch" <"$code"); then says ok "sm_$arch: $said"; else says FAIL "sm_$arch"; printf '%s\n' "$said" | head -n 40 | sed 's/^/        | /'; fi
    [ "$arch" = 90 ] || continue
    planted "a sum in local memory"                      's/ LDS(\.[0-9]+)? R/ LDL R/'                 ': local memory'
    planted "a scalar product"                           's/ HMMA\.[A-Z0-9.]+ R/ FFMA R/'               'no loop over steps with tensor cores'
    planted "some scalar products"                       's/ (LOP3|IADD3|FADD|FMUL)[A-Z0-9.]* / FFMA /'  ' FFMA in a step'
    planted "an L1 invalidation in each step"            's/ MUFU\.EX2 .*;/ CCTL.IVALL ;/'               'in a step, outside of waits'
    planted "a long division in each step"               's/ MUFU\.RCP / I2F.U64.RP /'                  'are divided in a step'
    arch=80                             # check H100 code as if for an A100: it has clusters and no groups
    planted "code for GPUs that cannot run it"           ''                                            '_cluster.*: code that these GPUs cannot run'
    planted "no code for GPUs that could"                ''                                            '_group.*: no loop over steps'
    arch=90
done
echo "$good of $all checks of GPU machine code hold"
[ "$good" = "$all" ]
