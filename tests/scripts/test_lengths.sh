#!/usr/bin/env bash
# test_lengths.sh    tests lengths from files of many kinds, packing of a stream, and exported plans. B is the build.
set -u
. "$(dirname "$0")/script.sh"
lengths() { "$weft" lengths "$@" | xargs; }
refused() { exits 1 "$1" "$weft" lengths "${@:2}"; } # MESSAGE ARGUMENTS..
python=$(command -v python3) numpy=
[ -z "$python" ] || ! "$python" -c 'import numpy' 2>/dev/null || numpy=1

# ---- numbers and texts
printf '3 1\n2' >numbers
gzip -k numbers
printf 'hello world\n\nab  c d\r\n\xc3\xa9' >text
check "numbers" is "$(lengths numbers)" "3 1 2"
check "gzipped numbers" is "$(lengths numbers.gz)" "3 1 2"
check "standard input, two files" is "$(lengths - numbers <numbers)" "3 1 2 3 1 2"
check "bytes of lines" is "$(lengths --unit bytes text)" "11 0 7 2"
check "words of lines" is "$(lengths --unit words text)" "2 0 3 1"
check "lines of paragraphs" is "$(lengths --unit lines text)" "1 2"
check "a text that looks like weights" is "$(printf '12345678{' | "$weft" lengths --unit bytes -)" 9
for bad in -2 1099511627776 nan 1.5 x 2147483648 99999999999999999999; do
    printf "1\n%s\n" "$bad" >bad
    check "not a length: $bad" refused "bad:2: \"$bad\" is not a length" bad
done
printf '5 1\0002\n' >bad
check "a zero byte" refused 'bad:1: "1?" is not a length' bad
printf 'ab\n\xff\xfe\n' >bad
check "not UTF-8" refused 'bad:2: found a byte that is not UTF-8' --unit bytes bad
check "an empty file" refused 'found no sequence' /dev/null
check "no such file" refused 'gone: No such file' gone
check "no such unit" exits 2 'found "token"; expected bytes' "$weft" lengths --unit token numbers
check "a unit that numbers do not have" refused 'found no table, JSON or array' --unit rows numbers

# ---- tables
printf 'id,text,length\na,"hi, you",3\nb,yo,4\na,hi,5\nb,yo,6\n' >t.csv
tr , '\t' <t.csv | sed 's/"hi\t you"/hi/' >t.tsv
check "a column of lengths" is "$(lengths t.csv)" "3 4 5 6"
check "bytes of texts, in the order of the file" is "$(lengths --column text --unit bytes t.csv)" "7 2 2 2"
check "words of texts" is "$(lengths --column text --unit words t.csv)" "2 1 1 1"
check "rows of an id" is "$(lengths --column id --unit rows t.csv)" "2 2"
check "tabs" is "$(lengths t.tsv)" "3 4 5 6"
check "no such column" refused 'no column is named "n"; expected one of "id", "text", "length"' --column n t.csv
printf 'length\n3\n-4\n' >bad.csv
check "a negative number" refused 'bad.csv: row 1: found -4' bad.csv
printf 'length\nnan\n' >bad.csv
check "NaN" refused 'bad.csv: row 0: found ' bad.csv
printf 'a,b\n1\n' >bad.csv
check "a short row" refused 'bad.csv:2: 1 field' --column a bad.csv

# ---- JSON
printf '{"input_ids": [1, 2, 3], "text": "a b"}\n\n{"length": 9, "text": "cde"}\n{"num_tokens": 4, "text": ""}\n' >j.jsonl
check "lines: tokens and lengths" is "$(lengths j.jsonl)" "3 9 4"
check "texts by a key" is "$(lengths --column text --unit bytes j.jsonl)" "3 3 0"
check "a batch of a tokenizer" is "$(printf '{"input_ids": [[1, 2],\n [], [3]], "x": 0}' | "$weft" lengths - | xargs)" "2 0 1"
check "encodings" is "$(printf '{"encodings": [{"ids": [1, 2]}, {"ids": []}]}' | "$weft" lengths - | xargs)" "2 0"
check "a list of objects" is "$(printf '[{"length": 1}, {"length": 2}]' | "$weft" lengths - | xargs)" "1 2"
check "a list of lists" is "$(printf '[[7, 7], [8]]' | "$weft" lengths - | xargs)" "2 1"
check "a bare list of tokens" is "$(printf '[7, 7]\n[8]\n' | "$weft" lengths --unit tokens - | xargs)" "2 1"
check "a bare list of lengths" is "$(printf '[7, 7]\n' | "$weft" lengths --unit length - | xargs)" "7 7"
json() { printf "$1" >bad.json; refused "$2" bad.json; }
check "a bare list" json '{"length": 1}\n[7]' 'bad.json:2: found a list without a key'
check "cut short" json '{"length": 1}\n{"length": ' 'bad.json:2: .*; expected JSON'
check "negative" json '{"length": 1}\n\n{"length": -1}' 'bad.json:3: found -1'
check "2^40" json '{"length": 1099511627776}' 'bad.json:1: found 1099511627776'
check "2^70" json '{"length": 1180591620717411303424}' 'bad.json:1: too big integer'
check "NaN in JSON" json '{"length": NaN}' 'bad.json:1: .*expected JSON'
check "with a point" json '{"length": 1.5}' 'number with a point'
check "not UTF-8 in JSON" json '{"length": 1}\n{"\xff": 1}' 'bad.json:2: unable to decode'
check "no key" json '{"n": 1}' 'no key length, num_tokens, input_ids or ids'
check "a text" json '{"length": "a"}' 'found a text; expected --unit bytes'

# ---- a plan for a training program: the lists worked out by hand
echo 3 2 0 6 1 >lengths
"$weft" plan --export e.jsonl lengths best_fit:capacity=6,rows=2 >/dev/null
cat >golden <<'END'
{"batch": 0, "rows": 2, "width": 6, "max_seqlen": 6, "cu_seqlens": [0, 3, 5, 6, 12], "position_ids": [[0, 1, 2, 0, 1, 0], [0, 1, 2, 3, 4, 5]], "document_ids": [[0, 0, 0, 1, 1, 2], [0, 0, 0, 0, 0, 0]], "sequence": [0, 1, 4, 3], "offset": [0, 0, 0, 0], "length": [3, 2, 1, 6], "row": [0, 0, 0, 1], "column": [0, 3, 5, 0]}
END
check "rows" cmp e.jsonl golden
"$weft" plan --export e.jsonl lengths chunk:capacity=4,rows=1,carry=yes >/dev/null
sed -n 2p e.jsonl >second
cat >golden <<'END'
{"batch": 1, "rows": 1, "width": 4, "max_seqlen": 3, "cu_seqlens": [0, 1, 4], "position_ids": [[1, 0, 1, 2]], "document_ids": [[0, 1, 1, 1]], "sequence": [1, 3], "offset": [1, 0], "length": [1, 3], "row": [0, 0], "column": [0, 1]}
END
check "a cut piece with a carried state goes on" cmp second golden
"$weft" plan --export e.jsonl lengths chunk:capacity=4,rows=1 >/dev/null
check "without one it begins anew" eval 'sed -n 2p e.jsonl | grep -q "\"position_ids\": \[\[0, 0, 1, 2\]\]"'
check "arrays are those of the lines" is "$("$weft" plan --export e.npz lengths best_fit:capacity=6,rows=2 >/dev/null && "$weft" show e.npz cu_seqlens)" "[5] of ints [0, 3, 5, 6, 12]"
check "they are also lengths" is "$(lengths --column length e.npz; lengths --column cu_seqlens e.npz; lengths --unit offsets --column cu_seqlens e.npz)" $'3 2 1 6\n3 2 1 6\n3 2 1 6'
check "and a plan of them" eval '"$weft" plan --json e.npz order:count=9 | grep -q "\"tokens\": 12"'
# ints of 32 bits: a header of 68 bytes, then the numbers
{ printf 'D\0\0\0\0\0\0\0{"num_tokens":{"dtype":"I32","shape":[4],"data_offsets":[0,16]}}    '; printf '\7\0\0\0\3\0\0\0\0\0\0\0\2\0\0\0'; } >a.safetensors
check "safetensors" is "$(lengths a.safetensors)" "7 3 0 2"
check "HDF5, by --column" is "$("$weft" convert a.safetensors a.h5 >/dev/null; lengths --column num_tokens a.h5)" "7 3 0 2"
check "differences of numbers that fall" refused 'num_tokens\[1\]: found -4; expected a length' --unit offsets a.h5
head -c 80 a.safetensors >bad.safetensors
check "damaged safetensors" refused 'bad.safetensors: ' bad.safetensors
head -c 900 e.npz >bad.npz
check "a damaged archive" refused 'bad.npz: ' bad.npz
check "no such array" refused 'none named n; expected --column NAME' --column n e.npz
check "two planners" exits 2 'found 2 planners; expected one' "$weft" plan --export e.npz lengths order:count=2 order:count=3
check "another ending" exits 2 'expected FILE.jsonl or FILE.npz' "$weft" plan --export e.txt lengths order:count=2
check "a plan that does not fit" exits 1 'found more than 2147483647 cells' "$weft" plan --export e.npz --corpus giant:1:3000000,n=3000 order:count=3000
exports() {                             # PLANNER
    "$weft" plan --json lengths "$1" >plan.json && "$weft" plan --export e.jsonl lengths "$1" >/dev/null &&
        "$weft" plan --export e.npz lengths "$1" >/dev/null && "$python" "$root/tests/plan/export.py" plan.json e.jsonl ${numpy:+e.npz}
}
"$weft" corpora lognormal:2:1,n=300 >lengths
[ -n "$numpy" ] || echo "python3 has no numpy: arrays are compared by weft show only"
for planner in best_fit:capacity=300,rows=3 chunk:capacity=20,rows=1,carry=yes chunk:capacity=20,rows=4 order:count=7 refill:slots=4 \
    streams:slots=3,window=8 powers:budget=64 fold best_fit_split:capacity=9,rows=5 pool:count=4,shuffle=yes balance:ranks=3; do
    [ -z "$python" ] || check "exported: $planner" exports $planner
done
# The example of docs/planners.md returns each sequence whole, in a plan that cuts none.
if [ -n "$numpy" ]; then
    sed -n '/^```python/,/^```$/p' "$root/docs/planners.md" | sed '/^```/d' >example.py
    cat >>example.py <<'END'
lengths = numpy.loadtxt("lengths", int)
begin = numpy.cumsum(lengths) - lengths
found = []
for b in range(len(plan["rows"])):
    ids, position, documents, ends = batch(b, numpy.arange(1, lengths.sum() + 1), begin)
    cells = ids[documents >= 0]
    assert len(cells) == ends[-1] and (position[ids > 0] == cells - 1 - begin[numpy.searchsorted(begin, cells - 1, "right") - 1]).all()
    found += list(cells)
assert sorted(found) == list(range(1, lengths.sum() + 1))
END
    check "the example of the documents" eval '"$weft" plan --export batches.npz lengths best_fit:capacity=300,rows=3 >/dev/null && "$python" example.py'
fi

# ---- a stream
stream() { "$weft" plan --stream "$@" best_fit:capacity=300,open=4; }
stream - <lengths >whole
sed 's/.*"row": \([0-9]*\),.*"pieces": /\1 /; s/}$//' whole | sort -n | cut -d' ' -f2- >rows
"$weft" plan --json lengths best_fit:capacity=300,open=4 | grep -oE '\[\[.*\]\](, "|\])' | sed 's/, "$//; s/^\[//; s/\]$//; s/\]\], \[\[/]]\n[[/g; s/\]\], \[\]/]]/' >planned
check "rows of a stream are those of the plan" cmp rows planned
rm -f state.npy parts
for part in 1,40 41,41 42,200 201,300; do sed -n ${part}p lengths | stream - --state state.npy >>parts; done
check "four runs with a file of open rows" eval 'head -n $(wc -l <parts) whole | cmp - parts && [ $(wc -l <parts) -lt $(wc -l <whole) ]'
cp state.npy kept.npy
stream /dev/null --state state.npy --flush >>parts
check "the last ends them" cmp parts whole
check "another planner" exits 1 'state is of best_fit:capacity=300,limit=0,open=4; expected first_fit:capacity=300,limit=0,open=4' "$weft" plan --stream /dev/null first_fit:capacity=300,open=4 --state kept.npy
head -c 400 kept.npy >bad.npy
check "a damaged file" exits 1 'state bad.npy: ' stream /dev/null --state bad.npy
printf '\377' | dd of=kept.npy bs=1 seek=250 conv=notrunc 2>/dev/null
check "a changed byte" exits 1 'damaged' stream /dev/null --state kept.npy
echo 5 x | stream - --state new.npy >/dev/null 2>&1
check "after an error no file is written" test ! -e new.npy
check "a bad length" exits 1 'stdin:2: "-1" is not a length' stream - < <(printf '4\n-1\n')
check "too long" exits 1 'stdin:2: packer_add: sequence 1 has 301 tokens' stream - < <(printf '4\n301\n')
check "a planner that needs all lengths" exits 1 'expected next_fit, first_fit' "$weft" plan --stream lengths spfhp:capacity=300
check "without open" exits 1 'open is missing' "$weft" plan --stream lengths first_fit:capacity=300
check "a row comes at once" eval '{ echo 300; sleep 5; } | stream - | { read -r -t 4 row && has "$row" "[0, 0, 300]"; }'
finish "lengths, streams and exported plans"
