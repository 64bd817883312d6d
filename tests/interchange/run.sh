#!/usr/bin/env bash
# run.sh    compares weft with PyTorch, Keras, ONNX and onnxruntime: exported models, imported models (zoo.py), and the makers of golden files.
# B is the build. The packages come from WEFT_PYTHON, or from PyPI into a venv outside the tree; without them it is skipped. Models are kept in
# B/interchange until zoo.py or a package changes.
set -u
build=$(realpath "${B:-build}") here=tests/interchange fails=0 checks=0
packages="torch onnx onnxruntime onnxscript safetensors keras h5py numpy" more="tensorflow tf2onnx scikit-learn skl2onnx"
venv=${XDG_CACHE_HOME:-$HOME/.cache}/weft/interchange
python=${WEFT_PYTHON:-$venv/bin/python}
has_all() { [ -x "$(command -v "$python")" ] && "$python" -c "import importlib.util as u, sys; sys.exit(any(not u.find_spec(p) for p in '$packages'.split()))"; }
if ! has_all && [ -z "${WEFT_PYTHON:-}" ]; then
    echo "weft: installing $packages into $venv" >&2
    # shellcheck disable=SC2086
    python3 -m venv "$venv" && timeout 1800 "$venv/bin/pip" -q install $packages >&2 && timeout 1200 "$venv/bin/pip" -q install $more >&2
fi
if ! has_all; then echo "skipped: interchange: $python lacks one of $packages (PyPI)"; exit 0; fi
export TF_CPP_MIN_LOG_LEVEL=3 CUDA_VISIBLE_DEVICES='' KERAS_BACKEND=tensorflow PYTHONDONTWRITEBYTECODE=1
"$python" -c 'import tensorflow, tf2onnx' 2>/dev/null || export KERAS_BACKEND=torch
new=$(mktemp -d) || exit 1
trap 'rm -rf "$new"' EXIT
versions=$("$python" -c "import importlib.metadata as m; print(*(p + ' ' + m.version(p) for p in '$packages'.split()), sep='\n')")
passes() { checks=$((checks + 1)); if "${@:2}" >"$new/log" 2>&1; then tail -n 1 "$new/log"; else fails=$((fails + 1)); echo "FAIL  $1"; grep -vE '^(\[W|WARNING|[IWE]0000)' "$new/log" | tail -n 20; fi; }

# Golden files: those made now are the committed ones. Other versions of a package may write other bytes.
same_files() {                          # MAKER
    mkdir "$new/files" && "$python" "$1" "$new/files" || return 1
    local f
    for f in "$new"/files/*; do         # a .keras file has the time in it
        [[ $f == *.keras ]] || cmp "$f" "$(find tests/golden/interchange -name "${f##*/}")" || return 1
    done
    echo "$1: $(find "$new/files" -type f | wc -l) files as committed"
}
for maker in "$here"/*_files.py; do
    other=$(while read -r name version; do
        for was in $(grep -oE "\b$name \(?[0-9][0-9.]*[0-9]" "$maker" | grep -oE '[0-9.]+$'); do [[ $version == $was* ]] || echo "$name $was"; done
    done <<<"$versions")
    if [ -n "$other" ]; then echo "skipped: $maker was run with $(echo $other), and other versions are installed"; continue; fi
    passes "$maker" same_files "$maker"
    rm -rf "$new/files"
done
passes export.py "$python" "$here/export.py" "$build"
key=$( (cat "$here/zoo.py"; echo "$versions") | cksum | cut -d' ' -f1)
passes zoo.py "$python" "$here/zoo.py" "$build/interchange/$key" --run "$build/weft"
echo "interchange: $checks checks, $fails failures"
[ $fails = 0 ]
