#!/usr/bin/env bash
# fuzz.sh SECONDS [READER...]    runs the libFuzzer programs of tests/fuzz, one for each reader, each from a new corpus. F is the folder of
# the programs. They share SECONDS of one core. SEED=1 repeats the same mutations; RUNS=1000 sets the number of runs for each reader, without a
# time limit. READER:WORD starts only from seeds with this word in their names, such as weights:.pt. Found files are saved in F/found, with the
# report. A reader that accepts no file fails, because it would test little.
set -u
seconds=$1; shift
[ $# -gt 0 ] || set -- checkpoint state_dict ragged csv frame text lengths planners weights onnx
corpus=$F/corpus found=$F/found; rm -rf "$corpus" "$F/tmp"; mkdir -p "$corpus" "$found" "$F/tmp"
TMPDIR=$(realpath "$F/tmp"); export TMPDIR LC_ALL=C
runs=0 crashes=0 hangs=0 large=0 changes=0 holes=0 readers=$#
"$F/seeds" "$corpus" || exit 1
printf '"id"\n"x"\n"y"\n"nan"\n"-inf"\n"1e300"\n"0x1p-3"\n"\\x22\\x22"\n"\\x0d\\x0a"\n' >"$F/words"

options() {                             # READER: prints one flag of libFuzzer per line. Checksums must not be solved by tracing comparisons
    echo "-seed=${SEED:-1}"; echo "-timeout=20"; echo "-print_final_stats=0"; echo "-artifact_prefix=$found/$1-"; echo "-rss_limit_mb=3000"
    case $1 in csv|text) echo "-dict=$F/words" ;; checkpoint|weights|onnx|planted_weights|planted_onnx) echo "-use_cmp=0"; echo "-cross_over=0"; echo "-mutate_depth=1" ;; esac
    case $1 in lengths|planners) echo "-max_len=300" ;; csv|text) echo "-max_len=4000" ;; *) echo "-max_len=30000" ;; esac
    if [ -n "${RUNS:-}" ]; then echo "-runs=$RUNS"; else echo "-max_total_time=$((share > 0 ? share : 1))"; fi
}

rest=$seconds
for r; do
    only=${r#"${r%%:*}"} r=${r%%:*}
    if [ -n "$only" ]; then mkdir "$corpus/$r$only"; cp "$corpus/$r"/*"${only#:}"* "$corpus/$r$only"; fi
    share=$((rest / readers)) readers=$((readers - 1)) rest=$((rest - share)) log=$F/$r$only.log kind=ok
    mapfile -t flags < <(options "$r")
    UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=allocator_may_return_null=1:max_allocation_size_mb=400:detect_leaks=1 LSAN_OPTIONS=suppressions=$PWD/tests/fuzz/suppressions:print_suppressions=0 \
        "$F/fuzz_$r" "${flags[@]}" "$corpus/$r$only" >"$log" 2>&1 </dev/null
    rc=$?
    n=$(sed -nE 's/^Done ([0-9]+) runs.*/\1/p; s/^#([0-9]+)\t.*/\1/p' "$log" | tail -n 1)
    runs=$((runs + ${n:-0}))
    taken=$(sed -n 's/^taken: \([0-9]*\) of.*/\1/p' "$log" | tail -n 1)
    if grep -qa '^found: hang:\|ERROR: libFuzzer: timeout' "$log"; then kind=hang hangs=$((hangs + 1))
    elif grep -qa '^found: too large:\|libFuzzer: out-of-memory' "$log"; then kind="too large" large=$((large + 1))
    elif grep -qa '^found: silent change:' "$log"; then kind="silent change" changes=$((changes + 1))
    elif [ $rc != 0 ]; then kind=crash crashes=$((crashes + 1))
    elif [ "${taken:-0}" = 0 ]; then kind="no file was taken" holes=$((holes + 1)); fi
    printf '  %-11s %9d runs, %9d taken  %s\n' "$r$only" "${n:-0}" "${taken:-0}" "$kind"
    if [ "$kind" != ok ]; then grep -anE '^found: |ERROR: |runtime error|SUMMARY|Test unit written|^    #[0-9] ' "$log" | head -n 40 | cut -c1-200 | sed 's/^/        | /'; fi
done
rm -rf "$F/tmp"
printf 'fuzz: %d readers, %s runs, %d s, %d crashes, %d hangs, %d too large, %d silent changes\n' $# "$(printf "%d" "$runs" | sed -E ':a; s/([0-9])([0-9]{3})($|,)/\1,\2\3/; ta')" \
    "$seconds" $crashes $hangs $large $changes
[ $((crashes + hangs + large + changes + holes)) = 0 ]
