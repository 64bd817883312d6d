#!/usr/bin/env bash
# test_python.sh    tests examples/python/weft.py with the library of the build. An unknown field is refused with the nearest name, and so is a
# package that pkg-config does not find. Failures are exceptions. B is the build. installcheck.sh compares structs and a network.
set -u
. "$(dirname "$0")/script.sh"
case ${V:-} in ''|double) ;; *) echo "skipped: Python cannot load a library with a sanitizer"; finish "Python"; exit ;; esac
python3 -c 'import pycparser' 2>/dev/null || { echo "skipped: no python3 with pycparser here"; finish "Python"; exit; }

cat >pkg-config <<END
#!/bin/sh
case "\$*" in
*nothing*) echo "Package nothing was not found in the pkg-config search path." >&2; exit 1 ;;
*--cflags*) echo "-I$root ${V:+-DWEFT_DOUBLE}" ;;
*) echo "$build" ;;
esac
END
chmod +x pkg-config
export PKG_CONFIG=$PWD/pkg-config PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/examples/python
python() { printf '%s\n' "import weft" "$@" | python3 -; }

check "a network runs" python "w = weft.weft_open(weft.weft_opts(seed=1, threads=1))" \
    "x = weft.weft_reals(w, weft.reals(1, 2, 3), *weft.SHAPE(3))" "weft.show(weft.weft_softmax(x, 0, None))"
check "a misspelt keyword" exits 1 "TypeError: weft_rnn_opts has no field 'hidden_size'; 'hidden' is near; it has: input, hidden" \
    python "weft.weft_rnn_opts(hidden_size=3)"
check "another one" exits 1 "no field 'bidirectonal'; 'bidirectional' is near" python "weft.weft_rnn_opts(input=2, bidirectonal=True)"
check "a misspelt attribute" exits 1 "no field 'bidirectonal'; 'bidirectional' is near" \
    python "o = weft.weft_rnn_opts(input=2, hidden=3)" "o.bidirectonal = True"
check "right ones" python "o = weft.weft_rnn_opts(input=2, hidden=3)" "o.bidirectional = True" "assert o.bidirectional and o.hidden == 3" \
    "assert weft.weft_lengths(2).n == 2"
check "an operator's failure" exits 1 "weft.Error: matmul: .*inner extents" python "x = weft.weft_zeros(weft.weft_open(None), 2, [2, 3])" "weft.weft_matmul(x, x)"
check "a context goes on after a failure" python "w = weft.weft_open(None)" "try: weft.weft_one_hot(weft.weft_scalar(w, 1), 2)" \
    "except weft.Error: pass" "assert weft.read(weft.weft_full(w, 3, 1, [2])) == [3, 3]"
check "a file's failure" exits 1 "weft.Error: /no/such: .*No such file" python "weft.weft_read_text('/no/such', None, weft.weft_dataset())"
check "a device that is not there" exits 1 "weft.Error: open: 9999 threads" python "weft.weft_open(weft.weft_opts(threads=9999))"
check "a package that is not there" exits 1 "ImportError: weft: .*pkg-config does not find nothing: Package nothing was not found" \
    env WEFT_PC=nothing python3 -c "import weft"
check "what to set then" exits 1 "PKG_CONFIG_PATH=PREFIX/lib/pkgconfig" env WEFT_PC=nothing python3 -c "import weft"
check "no pkg-config at all" exits 1 "ImportError: weft: /no/such is not installed" env PKG_CONFIG=/no/such python3 -c "import weft"
finish "Python"
