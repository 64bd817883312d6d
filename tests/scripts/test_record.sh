#!/usr/bin/env bash
# test_record.sh    tests the record of weft lab, its repetition and the report: equal numbers, planted changes, damaged files, kills. B is the build.
set -u
. "$(dirname "$0")/script.sh"

export XDG_CACHE_HOME=$PWD/cache
small=(--corpus uniform:1:30,n=90 --limit 90 --hidden=8 --update=100 --epochs=1 --rounds=2 --seconds=900)
plans=(--planner random:count=8 --planner chunk:capacity=16,rows=4 --padded random:count=8)
run() { "$weft" lab "${small[@]}" "$@"; }
again() { "$weft" lab --repeat "$@"; }
py() { python3 -c "import json, sys, hashlib, struct, re; load = lambda f: json.load(open(f))
$1" "${@:2}"; }

# ---- the record
check "a run" run "${plans[@]}" --out a.html --report a.md
check "one file of JSON, with what repeats it" py 'r = load("a-record.json"); assert set(r) == {"weft_lab_record", "weft", "date", "command", "options", "planners", "seeds", "machine", "environment", "corpus", "counted", "computed", "timed", "seal"}, set(r)'
check "defaults are resolved" py 'o = load("a-record.json")["options"]; assert o["lr"] == .005 and o["threads"] == 1 and o["seeds"] == 3 and o["only"].count(",") == 6 and "quick" not in o, o'
check "planners in their order" py 'p = load("a-record.json")["planners"]; assert [(x["planner"], x["padded"]) for x in p] == [("random:count=8", False), ("chunk:capacity=16,rows=4", False), ("random:count=8", True)], p'
check "the machine" py 'm = load("a-record.json")["machine"]; assert set(m) == {"cpu", "cores", "instructions", "system", "compiler", "openblas"} and all(m.values()), m'
check "every measurement of the other file is in it" py 'r = load("a-record.json"); lines = [json.loads(l) for l in open("a-times.jsonl")]
have = {(e["experiment"], e["planner"], e.get("mean_of"), e.get("instance"), k, v) for s in ("counted", "computed", "timed") for e in r[s] for k, v in e.items()}
n = 0
for e in lines:
    for k, v in e.items():
        if "planner" in e: n += 1; assert (e["experiment"], e["planner"], e.get("mean_of"), e.get("instance"), k, v) in have, (e, k)
assert n > 1000, n'
check "and all seven experiments" py 'r = load("a-record.json"); e = {x["experiment"] for s in ("counted", "computed", "timed") for x in r[s]}; assert e == {"plan", "exactness", "contamination", "adversaries", "cost", "predicted_pass", "times", "learning", "gradient"}, e'
check "figures of plans are those of weft plan" eval '"$weft" lab "${small[@]}" --lengths >lengths && "$weft" plan --json lengths random:count=8 chunk:capacity=16,rows=4 >plans.json'
check "to the last digit that it prints" py 'for e, p in zip(load("a-record.json")["counted"], load("plans.json")["plans"]):
    for k, v in p["figures"].items(): assert k not in e or float("%.9g" % e[k]) == v, (k, e[k], v)
    assert sum(k in e for k in p["figures"]) >= 13'
hash_is() { "$weft" corpora "uniform:1:30,n=$1" >lengths && run --corpus "uniform:1:30,n=$1" --planner order:count=2 --only=adversaries --out h.html &&
    py 'assert load("h-record.json")["corpus"]["sha256"] == hashlib.sha256(b"".join(struct.pack("<i", int(x)) for x in open("lengths"))).hexdigest()'; }
for n in 2 13 14 15 16 17 29 30 31 500; do check "the hash of $n lengths is that of hashlib" hash_is $n; done

# ---- its repetition
check "a repetition is equal" exits 0 '^counted: 0 differences' again a-record.json
check "in the computed numbers also" eval 'again a-record.json | grep -q "^computed: 0 differences"'
check "with two threads" exits 0 '^options threads  *1  *2$' again a-record.json --threads 2
check "on other instructions counted numbers are equal" eval '! WEFT_ISA=generic again a-record.json >other && grep -q "^counted: 0 differences" other'
check "computed ones differ, which is explained" eval 'grep -q "^computed: [1-9].* may differ between instruction sets" other && grep -q "^environment WEFT_ISA  *-  *\"generic\"" other && grep -q "^learning random:count=8 seed 1 updates [0-9]* loss " other'
check "times have a tolerance" grep -q '^timed: now divided by recorded is .* beyond the tolerance of 1.25$' other
check "a repetition writes its own files" eval 'again a-record.json --out b.html --report b.md && again b-record.json && ! again b-record.json --out b.html 2>words'
check "but not over the record" grep -q 'found the record b-record.json as a file to write' words
check "options of the record are not given twice" exits 2 'repeat: found --planner' again a-record.json --planner order:count=2

changed() {                             # WHAT PYTHON ROW: the record with this change is refused, with this row in the table
    check "changed: $1" py "r = load('a-record.json'); $2; json.dump(r, open('e.json', 'w'))"
    check "$1 is found" exits 1 "$3" again e.json
    case $3 in '^cost'*) ;; *) check "$1 is counted" grep -qE '^(counted|computed): [1-9]' output ;; esac
    check "and the broken seal is reported" grep -q '^the seal does not match: the record was changed' output
}
changed "a figure of a plan" 'r["counted"][1]["steps"] += 1' '^plan chunk:capacity=16,rows=4 steps '
changed "the last bit of a loss" 'import math; e = [x for x in r["computed"] if x["experiment"] == "learning"][5]; e["loss"] = math.nextafter(e["loss"], 9) if hasattr(math, "nextafter") else e["loss"] * (1 + 2 ** -52)' '^learning random:count=8 seed 1 updates [0-9]* loss '
changed "a time" '[e for e in r["timed"] if e["experiment"] == "cost"][0]["measured_ms"] = 1e6' '^cost random:count=8 measured_ms  *1e6 '
changed "a result that is left out" 'del r["computed"][-1]' '^gradient .*-  '
changed "a result that is added" 'r["counted"].append({"experiment": "plan", "planner": "best", "steps": 1})' '^plan best steps  *1  *-$'
changed "a plan" 'r["counted"][0]["sha256"] = "0" * 64' '^plan random:count=8 sha256 '
changed "an option" 'r["options"]["lr"] = .006' '^computed: [1-9]'

# ---- records that cannot be repeated
check "another corpus" exits 1 'found the corpus uniform:1:30,n=91 with the SHA-256 [0-9a-f]*; expected the corpus uniform:1:30,n=90 with [0-9a-f]*: their' again a-record.json --corpus uniform:1:30,n=91
check "other lengths in the same file" eval 'seq 3 60 >l && run --corpus file:l --planner order:count=4 --only=adversaries --out l.html && again l-record.json && echo 5 >>l && ! again l-record.json >out 2>&1 && grep -q "found the corpus file:l with" out'
size=$(wc -c <a-record.json)
for part in 0 1 40 900 $((size / 2)) $((size - 3)); do head -c "$part" a-record.json >cut.json; check "a file cut after $part bytes" exits 1 'cut.json:[0-9]*: .*; expected a whole record of weft lab' again cut.json; done
bad() { check "$1" py "r = load('a-record.json'); $2; json.dump(r, open('e.json', 'w'))"; check "$1: refused" exits 1 "$3" again e.json; }
bad "an option of the future" 'r["options"]["warp"] = 3' 'found the option "warp", which weft .* does not know'
bad "a format of the future" 'r["weft_lab_record"] = 2; r["weft"]["version"] = "9.1"' 'found a record of format 2, written by weft 9.1; expected format 1'
bad "an option of another type" 'r["options"]["hidden"] = [8]' 'the option "hidden" is damaged'
bad "no list of results" 'r["computed"] = 3' 'expected a whole record'
bad "a planner without its text" 'r["planners"][1] = 4' 'planners: element 1 is damaged'
check "no such planner" eval 'sed "s/\"random:/\"rndom:/" a-record.json >e.json; ! again e.json >out 2>&1 && grep -q "\"random\" is near" out'
check "another file of JSON" exits 1 'not found: weft_lab_record; expected a whole record' again plans.json
check "no such file" exits 1 'gone.json: No such file' again gone.json
check "no folder for the record" exits 1 'gone/r.json: cannot be written' run --planner order:count=2 --only=adversaries --out r.html --record gone/r.json

# ---- runs that end early
check "stopped by the limit" eval 'run "${plans[@]}" --seconds=.05 --out s.html 2>err; py "assert load(\"s-record.json\")[\"stopped\"]"'
check "its repetition may be longer" exits 0 '^computed: 0 differences' again s-record.json --seconds 900
check "but not shorter" exits 1 'the time limit of 0.05 s is over; the comparison has' again a-record.json --seconds .05
cp s-record.json k.json
check "a run that is killed while it writes" eval '! (ulimit -f 8; again a-record.json --record k.json) >out 2>&1'
check "leaves the old record, and no other file" eval 'cmp s-record.json k.json && [ "$(ls -A | grep -c "k[.]json")" = 1 ]'
check "a run that is not killed replaces it" eval 'again a-record.json --record k.json && ! cmp -s s-record.json k.json && again k.json'

# ---- plans of a file
awk '{ printf "%s%d", (NR > 1 ? "], [" : "{\"planner\": \"mine\", \"batches\": [["), NR - 1 } END { print "]]}" }' <("$weft" lab "${small[@]}" --lengths) >mine.jsonl
check "plans of a file are repeated" eval 'run --from mine.jsonl --planner order:count=8 --only=layouts --out f.html && again f-record.json'
sed -i 's/\[\[0\], \[1\]/[[1], [0]/' mine.jsonl
check "other plans are found" exits 1 '^plan mine sha256 ' again f-record.json

# ---- the report
columns() { awk '/^\|/ { line = $0; gsub(/\\\|/, "", line); n = gsub(/\|/, "", line); bad += rows && n != first; first = n; rows++ } END { exit bad || rows < 3 }' "$1"; }
check "its table has equal columns" columns a.md
check "which is checked" eval 'sed "s/^| 2 /| 2 | /" a.md >c.md; ! columns c.md'
check "its three figures exist" eval '[ "$(grep -o "](<[^>]*" a.md | cut -c4- | xargs ls | wc -l)" = 3 ]'
check "they are well-formed XML" py 'import glob, xml.dom.minidom as x; n = [x.parse(f) for f in glob.glob("a-*.svg")]; assert len(n) == 3'
check "its numbers are those of the page" py 'page = re.sub("<wbr/>", "", open("a.html").read()); rows = [l.split("|")[2:-1] for l in open("a.md") if re.match(r"\| [1-9]", l)]
assert len(rows) == 3
for row in rows:
    for v in row: assert ">" + v.strip(" *") + "<" in page, v'
check "its method is that of the record" eval 'grep -q "an LSTM of 8 units" a.md && grep -qF "$(sed -n "s/.*\"sha256\": \"\([0-9a-f]*\)\"},$/\1/p" a-record.json)" a.md'
check "the plan to take is that of the page" eval '[ -n "$(grep -o "^\*\*Take [1-9]" a.md)" ] && grep -q "<strong>$(grep -o "Take [1-9]" a.md)" a.html'
check "missing experiments are listed" eval 'run --planner order:count=8 --only=layouts --out p.html --report p.md && grep -q "^- Not measured: learning" p.md && ! grep -q AdamW p.md && grep -q "^- Why experiments are missing: " p.md'
check "a report keeps the page" exits 2 'report: found "p.html"; expected FILE.md' run --planner order:count=8 --out p.html --report p.html
check "a page is no Markdown" exits 2 "out: found .p.md.; expected FILE.html" run --planner order:count=8 --out p.md
check "a folder for figures that is missing" exits 1 'cannot be written' run --planner order:count=8 --only=layouts --out p.html --report gone/p.md
finish "records of weft lab"
