#!/usr/bin/env bash
# test_reference.sh    compares each planner with its definition in Python (tests/plan/reference.py): random and hostile
# lengths, any options, plans and figures. B is the build; INSTANCES a planner: 150, 40 under a sanitizer, 1,000 under WEFT_SOAK. SEED.
set -u
python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null || { echo "skipped: the planners' definitions: no python3 of 3.8 or later"; exit 0; }
few=150
case ${V:-} in asan|dasan|tsan) few=40 ;; esac
[ -z "${WEFT_SOAK:-}" ] || few=1000
exec python3 -B "$(dirname "$0")/../plan/compare.py" "${B:-build}/weft" "${INSTANCES:-$few}" "${SEED:-1}"
