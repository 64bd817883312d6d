#!/usr/bin/env bash
# state.sh: prints a hash of every file that the PTX or its interpreter is made from. tests/ptx/recorded holds that of the last state whose
# tests (make test-ptx) passed: .ci/run executes PTX only if the two differ.
cd "$(dirname "$0")/../.." || exit 1
export LC_ALL=C
find cuda core/shared core/cells tests/ptx -type f ! -name recorded ! -name state.sh ! -name '*.md' | sort | xargs sha256sum | sha256sum | cut -c1-64
