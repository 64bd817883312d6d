#!/usr/bin/env bash
# test_classify.sh: time series by networks and by nearest neighbours, and damaged files. B is the build.
. "$(dirname "$0")/script.sh"
classify=$examples/classify
options=(--seeds 2 --threads 1 --updates 60 --batch 8 --hidden 8 --lr .02)

# Two classes of two channels, 5 to 12 steps: channel 1 is noise, channel 2 is 1 or -1 from its third step.
series() { awk -v seed="$1" -v n="$2" 'BEGIN { srand(seed); print "@classLabel true up down\n@data"
    for (i = 0; i < n; i++) { m = 5 + int(8 * rand()); a = b = ""; for (t = 0; t < m; t++) {
        a = a (t ? "," : "") rand(); b = b (t ? "," : "") (t < 2 ? 0 : i % 2 ? 1 : -1) } print a ":" b ":" (i % 2 ? "up" : "down") } }'; }
mkdir -p data/two data/bad
series 1 24 >data/two/two_TRAIN.ts; series 2 30 >data/two/two_TEST.ts
check "a data set" exits 0 '^two *24 *30 *[5-9][.][.]1[0-2] *2 *2 ' "$classify" "${options[@]}" data two
check "each network and DTW find the classes" eval "awk '\$1 == \"two\" { exit !(\$7 > 95 && \$10 > 95 && \$13 > 95 && \$16 == 100) }' output"
cp output first
check "the same numbers with two threads" eval '"$classify" "${options[@]}" --threads 2 data two | diff - first'
# ---- nearest neighbours on noise, beside the definition of DTW
python3 - <<'END'
import os, random
random.seed(3)
def series(n): return [(k % 3, [random.gauss(k % 3 * .4, 1) for _ in range(random.randint(2, 9))]) for k in range(n)]
def far(x, y, i, k, known):
    if (i, k) not in known:
        known[i, k] = (x[i] - y[k]) ** 2 + min([far(x, y, *at, known) for at in ((i - 1, k), (i, k - 1), (i - 1, k - 1)) if min(at) >= 0], default=0)
    return known[i, k]
train, test = series(30), series(60)
right = sum(label == min(train, key=lambda t: far(x, t[1], len(x) - 1, len(t[1]) - 1, {}))[0] for label, x in test)
os.makedirs("data/noise")
for name, part in ("TRAIN", train), ("TEST", test):
    with open(f"data/noise/noise_{name}.ts", "w") as f:
        f.write("@data\n" + "".join(",".join(map(repr, x)) + f":{label}\n" for label, x in part))
print(f"{100 * right / len(test):.1f}", file=open("expected", "w"))
END
check "DTW has the accuracy of its definition" eval '[ "$("$classify" --seeds 1 --updates 1 data noise | awk "\$1 == \"noise\" { print \$16 }")" = "$(cat expected)" ]'
printf 'Resamples:,0,1\ntwo,0.5,0.6\n' >InceptionTime_accuracy.csv; printf 'twofold,0.9\n' >HC2_accuracy.csv
check "published accuracies" exits 0 ' 50[.]0 *-$' "$classify" "${options[@]}" --updates 1 --seeds 1 --published . data two
cp data/two/two_TEST.ts data/bad/bad_TEST.ts
bad() { printf '%b' "$2" >data/bad/bad_TRAIN.ts; check "$1" exits 1 "$3" "$classify" "${options[@]}" data bad; }
bad "a word for a number"        '@data\n1,x:1:up\n'           'bad_TRAIN.ts: found "x'
bad "an infinite number"         '@data\n1,inf:1,2:up\n'       'found "inf'
bad "channels of two lengths"    '@data\n1,2:3:up\n'           'series 1: expected channels of one length'
bad "other channels than before" '@data\n1,2:3,4:up\n1,2:up\n' 'series 2: found 1 channels; expected 2'
bad "no label"                   '@data\n1,2\n'                'found no ":" in "1,2"'
bad "no series"                  '@data\n'                     'found no series'
bad "an empty file"              ''                            'found nothing'
check "no such data set" exits 1 'none_TRAIN.ts: No such file' "$classify" "${options[@]}" data none
check "no data set" exits 2 'expected FOLDER NAME' "$classify" data
finish "classify"
