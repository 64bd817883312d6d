#!/usr/bin/env bash
# stream.sh [FLAGS]    measures calls with one token in weft and, alternately, in onnxruntime. bench/stream/stream.c describes output and flags. B
# is the build. onnxruntime and onnx come from WEFT_PYTHON, or from PyPI into a venv outside the tree. Without them only weft is measured, after
# a message.
set -u
build=$(realpath "${B:-build}") here=$(cd "$(dirname "$0")" && pwd)
has_both() { [ -x "$(command -v "$1")" ] && "$1" -c 'import onnx, onnxruntime' 2>/dev/null; }
venv=${XDG_CACHE_HOME:-$HOME/.cache}/weft/onnxruntime
python=${WEFT_PYTHON:-$venv/bin/python}
if ! has_both "$python" && [ -z "${WEFT_PYTHON:-}" ]; then
    echo "weft: installing onnxruntime and onnx into $venv" >&2
    python3 -m venv "$venv" && timeout 300 "$venv/bin/pip" -q install onnxruntime onnx >&2
fi
if ! has_both "$python"; then
    echo "skipped: onnxruntime: $python lacks onnx or onnxruntime (PyPI)"
    exec "$build/bench/stream/stream" "$@"
fi
models=$(mktemp -d) || exit 1
trap 'rm -rf "$models"' EXIT
library=$("$python" -c 'import glob, os, onnxruntime as o; print(o.__version__, *glob.glob(os.path.dirname(o.__file__) + "/capi/libonnxruntime.so.*"))')
"$python" "$here/stream/model.py" "$models" 32 64 128 256 512 || exit 1
echo "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1), one thread, onnxruntime ${library%% *}"
"$build/bench/stream/stream" --library "${library#* }" --models "$models" "$@"
