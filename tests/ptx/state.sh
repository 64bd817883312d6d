#!/usr/bin/env bash
# state.sh: prints a hash of all sources of the PTX and its interpreter. tests/ptx/recorded has the hash of the last state that passed
# make test-ptx. .ci/run executes PTX only if the two differ.
cd "$(dirname "$0")/../.." || exit 1
export LC_ALL=C
find cuda core/shared core/cells tests/ptx -type f ! -name recorded ! -name state.sh ! -name '*.md' | sort | xargs sha256sum | sha256sum | cut -c1-64
