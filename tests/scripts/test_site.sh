#!/usr/bin/env bash
# test_site.sh    tests the site without a browser. Two builds have the same bytes, the reference has each exported function, each link has a
# target, all lessons and their files are included, and planted faults are found. Skipped without a Python that has the packages.
set -u
root=$PWD build=$(realpath "${B:-build}")
if ! sh docs/site/python.sh -c pass 2>/dev/null; then echo "skipped: test_site: no python3-markdown and python3-pygments here"; exit 0; fi
. "$(dirname "$0")/script.sh"
site=$dir/site
python() { (cd "$root" && sh docs/site/python.sh "$@"); }
made() { PYTHONHASHSEED=$2 python docs/site/make.py "$dir/$1"; }
sound() { python docs/site/check.py "$dir/$1"; }
functions() {                           # of the library, or if it is not built, of the headers; without second names
    if [ -f "$build/libweft.so" ]; then comm -23 <(B=$build bash tests/exports.sh exported) <(bash tests/exports.sh labels); else bash tests/exports.sh declared; fi
}
check "it is made" made site 1
check "once more the same bytes" eval 'made again 2 && diff -r site again'
check "nothing is wrong with it" sound site
check "the reference has all exported functions, and no others" diff <(python docs/site/check.py "$site" anchors) <(cd "$root" && functions)
types() { (cd "$root" && cat $(sed -n 's/^#include "\(.*\)"/\1/p' weft*.h)) | sed -nE 's/^(} |typedef .* )(weft_[a-z_]+);.*/\2/p; s/^#define (WEFT_[A-Z]+[A-Z_]*).*/\1/p' | grep -vE '_H$|STATUS_NAME|weft__' | sort -u; }
placed() {
    local t n=0
    for t in $(types); do n=$((n + 1)); grep -qr "id=\"$t\"" site/api || { echo "$t has no place"; return 1; }; done
    [ $n -gt 100 ]
}
check "and all types and macros" placed
check "and constants" grep -q 'id="WEFT_ENOMEM"' site/api/api_core.html
for lesson in "$root"/lessons/[0-9]*/lesson.md; do
    name=$(basename "$(dirname "$lesson")")
    check "$name is there" grep -q '<h1' "site/lessons/$name/index.html"
    check "$name is in the list of pages" grep -q "href=\"lessons/$name/index.html\"" site/index.html
done
for page in tutorial conventions cells planners lab cost performance forecast api design/tape; do check "$page is there" test -s "site/docs/$page.html"; done
check "weft_rnn_run has its place" grep -q 'id="weft_rnn_run"' site/api/api_rnn.html
check "a comment before a function is there" grep -q 'Ends the step: its tensors, ragged batches and tape' site/api/api_core.html
check "and one behind it" grep -q 'the library built with `make V=double`' site/api/api_core.html
check "a name in code is a link" grep -q 'href="../api/api_core.html#weft_open"' site/docs/tutorial.html
# Equations are MathML, whose fractions, scripts and sums have the right number of parts.
equation() { python -c 'import sys; sys.path.append("lessons"); import equations; print(equations.converted(sys.argv[1]))' "$1"; }
parts() {
    python -c 'import glob, sys
from xml.etree import ElementTree
want = {"mfrac": 2, "msub": 2, "msup": 2, "msubsup": 3, "munder": 2}
found = [e for f in glob.glob(sys.argv[1] + "/lessons/*/index.html") for e in ElementTree.parse(f).iter() if e.tag in want]
sys.exit(len(found) < 90 or any(len(e) != want[e.tag] for e in found))' "$dir/site"
}
check "a prime and a fraction" exits 0 '<mi>c</mi><mo lspace="0" rspace="0">&#8242;</mo></mrow><mo>=</mo><mfrac><mn>1</mn><mi>N</mi></mfrac>' equation "    c' = 1 / N"
check "a root and a second line" exits 0 '<msqrt><mrow><mi>x</mi></mrow></msqrt></mrow></math></p><p><math displaystyle="true"><mspace width="2.5em"/><mrow><mo>+</mo><mi>y</mi>' equation "    a = sqrt(x)
      + y"
check "a remark" exits 0 '</math> <span>a &lt; b</span></p>' equation '    a = b    a < b'
for text in 'y = some words' 'y = (a' 'y = a_' 'y = a /' 'y = f[k]' 'ls -l'; do check "no equation: $text" exits 0 '^None$' equation "    $text"; done
check "equations in lessons" parts
check "and in documents" grep -q '<munder><mo>&#8721;</mo><mrow><mi>batches</mi>' site/docs/cost.html
check "any other block is code" grep -q 'out\[k\] = how many' site/lessons/07_packed_sequence/index.html

# The search finds the pages of queries.txt, by the program of the page.
found() {                               # SITE QUERIES
    node -e 'var fs = require("fs"), [root, site, table] = process.argv.slice(1), Search = require(root + "/docs/site/search.js"), index, texts = {}, wrong = 0, n = 0;
globalThis.weft_index = function (i) { index = i; }; globalThis.weft_text = function (n, places) { texts[n] = places; };
function load(name) { (0, eval)(fs.readFileSync(`${site}/search/${name}.js`, "utf8")); }
load("index");
var search = new Search(index);
fs.readFileSync(table, "utf8").trim().split("\n").forEach(function (line) {
    var [, page, sign, queries] = line.match(/(.*?) (==?) (.*)/);
    for (const query of queries.split(", ")) {
        search.pages(query).forEach(load);
        var pages = search.rank(query, texts).map(r => r.page[0]), at = pages.indexOf(page);
        n++;
        if (at < 0 || at >= (sign === "==" ? 1 : 3)) { wrong++; console.log(`${query}: expected ${page}; found ${pages.slice(0, 3)}`); }
    }
});
if (wrong || n < 25) process.exit(1);' "$root" "$1" "$2"
}
if command -v node >/dev/null; then
    check "the search finds pages" found site "$root/docs/site/queries.txt"
    (cat "$root/docs/site/queries.txt"; echo 'docs/cost.html == teacher forcing') >false.txt
    check "a page that it does not find" exits 1 "teacher forcing: expected docs/cost.html" found site false.txt
else echo "skipped: no node: the search is tested by make site-check"; fi
check "the index is small" test "$(stat -c %s site/search/index.js)" -lt 100000
check "one script, in one page" is "$(grep -rl '<script' site)" site/search.html

# Broken pages are found and reported.
broken() {                              # PATTERN FILE SED: changes the file in a copy
    rm -rf copy; cp -r site copy
    sed -i "$3" "copy/$2"
    cmp -s "site/$2" "copy/$2" && { echo "nothing was changed"; return 1; }
    exits 1 "$1" sound copy
}
tutorial=docs/tutorial.html
check "a dead link" broken "leads nowhere: gone.html" $tutorial 's|</main>|<p><a href="gone.html">x</a></p></main>|'
check "a dead anchor" broken "no such place: cells.html#gone" $tutorial 's|</main>|<p><a href="cells.html#gone">x</a></p></main>|'
check "a picture from elsewhere" broken "img to elsewhere" $tutorial 's|</main>|<img alt="x" src="https://example.org/x.png" /></main>|'
check "a picture without a text" broken "a picture without a text" readme.html 's|<img alt="[^"]*"|<img alt=""|'
check "a picture that is not there" broken "leads nowhere: docs/gone.svg" readme.html 's|src="docs/batch.svg"|src="docs/gone.svg"|'
check "a picture without a size" broken "without width and height: docs/batch.svg" readme.html 's| width="900"||'
check "a drawing without a role" broken "index.html: a drawing has no role img" index.html 's| role="img"||'
check "a picture without words" broken "docs/batch.svg: has no role img, title or desc" docs/batch.svg 's|<desc>.*</desc>||'
check "small letters" broken "docs/batch.svg: has letters of 8 px" docs/batch.svg 's|font-size: 10px|font-size: 8px|'
check "a page without a description" broken "has no description" $tutorial 's|name="description"|name="x"|'
check "a page without a skip link" broken "does not begin with a link to its text" $tutorial 's|class="skip" href="#content"|class="skip" href="#ways"|'
check "a page that is too heavy" broken "has [0-9]* bytes with its pictures; expected at most 100000" $tutorial "$(printf '$ s|$|<!-- %s -->|' "$(head -c 60000 /dev/zero | tr '\0' x)")"
check "an equation as code" broken "an equation as code: a = b" $tutorial 's|</main>|<pre>a = b x</pre></main>|'
check "a cell that a card cannot name" broken "a cell without the name of its column" docs/glossary.html '0,/ data-label="meaning"/s///'
check "two next pages" broken "another next page" $tutorial 's|</main>|<p>Next: the end</p></main>|'
check "an element that does not end" broken "is not well-formed" $tutorial 's|</footer>||'
# The picture has each token once, and the batch sizes of the planner.
check "45 cells in memory" is 45 "$(grep -o '<g class="cell"' site/index.html | wc -l)"
check "8 8 8 7 5 4 3 2" is "8 8 8 7 5 4 3 2" "$(sed -nE 's|.*class="size".*>([0-9])</text>.*|\1|p' site/index.html | paste -sd' ')"
check "an id twice" broken "two elements have the id content" $tutorial 's|<footer>|<footer id="content">|'
check "a second script" broken "tutorial.html: a script" $tutorial 's|</main>|<script>0</script></main>|'
check "a heading that is left out" broken "of levels" $tutorial 's|<h2|<h4|; s|</h2>|</h4>|'
check "a page that no one leads to" eval 'cp -r site lone; echo "<html/>" >lone/lone.html; exits 1 "lone.html: no page leads to it" sound lone'
check "another number than the program's" broken "shows another lessons/02_rnn_by_hand/expected.txt" lessons/02_rnn_by_hand/index.html 's|0\.6044|0.6045|'
check "a function without a place" broken "no such place: .*#weft_rnn_trace" api/api_trace.html 's| id="weft_rnn_trace"||'
# Slides: one that loses the first line of each block of numbers, and one that puts too much on a slide, are reported.
slides() { (cd "$root" && sh docs/site/python.sh "$1" "$here/slides" $(command -v chromium | head -n 1)); }
here=$PWD
check "slides" slides lessons/slides.py
sed 's/escape(chr(10).join(now))/escape(chr(10).join(now[1:]))/' "$root/lessons/slides.py" >lossy.py
check "slides that lose numbers" exits 1 "02.html: does not contain: step letter unit" slides "$here/lossy.py"
if command -v chromium >/dev/null; then
    sed 's/^LINES, COLUMNS = 24/LINES, COLUMNS = 99/; s/size = min(24,/size = max(24,/' "$root/lessons/slides.py" >large.py
    check "slides that do not fit" exits 1 "11.html: slide [0-9]* does not fit" slides "$here/large.py"
fi
finish "the site"
