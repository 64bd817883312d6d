#!/usr/bin/env bash
# check_in_chromium.sh    checks every page of $B/site in a headless Chromium, with docs/site/look.py: light, dark, 360 px wide and on paper. The
# console stays empty, nothing is fetched from the network, no picture is missing, texts have enough contrast and size, nothing overflows or moves
# after it is shown, targets are large enough, the Tab key, the search and the moving picture work. Every SVG is opened light and dark, for the contrast of its texts. Screenshots go to $B/site/shots. At the end a page and an
# SVG with all these faults must be reported. Skipped with a message without Chromium.
set -u
root=$PWD site=$(realpath "${B:-build}")/site
for chromium in chromium chromium-browser google-chrome chrome-headless-shell; do command -v "$chromium" >/dev/null && break; chromium=; done
if [ -z "$chromium" ]; then echo "skipped: site-check: no Chromium: apt-get install chromium"; exit 0; fi
. "$root/tests/scripts/script.sh"
export XDG_CACHE_HOME=$PWD/cache
look() { (cd "$root" && sh docs/site/python.sh docs/site/look.py "$1" "$chromium" "${@:2}"); }

check "the pages" look "$site"
tail -n 1 out
mkdir faulty
cat >faulty/page.html <<'END'
<!DOCTYPE html><html lang="en"><title>x</title><style>@media (prefers-color-scheme: dark) { .dim { color: #555; background: #444 } }</style>
<p style="color: #aaa; background: #fff">pale</p><p class="dim">dim in the dark</p><div style="width: 900px">wide</div>
<p style="font-size: 9px">tiny</p><a style="display: block; font-size: 12px; line-height: 14px" href="#a">one</a><a style="display: block; font-size: 12px; line-height: 14px" href="#b">two</a>
<img src="picture.svg" alt="small" width="300" height="99" style="width: 150px; height: 50px" /><script>addEventListener("load", function () { setTimeout(function () { document.body.style.paddingTop = "300px"; }, 50); });</script>
<img src="gone.png" alt="gone" /><img src="http://localhost/x.png" alt="elsewhere" /><script>nothing.here()</script></html>
END
cat >faulty/picture.svg <<'END'
<svg xmlns="http://www.w3.org/2000/svg" width="300" height="99"><style>text { fill: #333 } @media (prefers-color-scheme: dark) { text { fill: #ddd } }</style>
<rect width="99" height="99" fill="#c9e6f8"/><text x="9" y="40">on a light box</text></svg>
END
check "faults are seen" exits 1 "1 pages in 4 ways, 1 SVGs in 2" look "$PWD/faulty"
for fault in "page.html, light: contrast .* 'pale'" "page.html, dark: contrast .* 'dim in the dark'" "page.html, narrow: is 9.. px wide; expected at most 360" "page.html, paper: goes over the edge" \
    "page.html, light: a picture is missing: gone.png" "page.html, light: requests http://localhost/x.png" "page.html, light: console: .*nothing is not defined" "picture.svg, dark: contrast .* 'on a light box'" \
    "page.html, light: letters of 9.0 px: p 'tiny'" "page.html, narrow: a target of .* px: a 'one'" "page.html, light: letters of 5.0 px in picture.svg" "page.html, light: moves after it is shown"; do
    check "$fault" grep -q "$fault" output
done
# A broken copy: keys show no focus, the search weighs names wrongly, the picture always moves and has no pause, the footer covers the text.
cp -r "$site" broken
sed -i 's/outline: 3px/outline: 0 none; x: 3px/; s/^footer {/footer { position: sticky; bottom: 0; margin-left: -9rem; background: red;/' broken/style.css
sed -i 's/sum += 60/sum -= 600/' broken/search.html
sed -i 's/prefers-reduced-motion: no-preference/min-width: 1px/; s/#pause:checked/#none/' broken/index.html
check "and a broken copy" exits 1 "1 pages in 4 ways" look "$PWD/broken" index.html
for fault in "key Tab 1 leads to .* shows no focus" "search.html: weft_rnn_run: expected api/api_rnn.html" "index.html: moves for those who want no motion" "index.html: the pause stops nothing" "the footer covers"; do
    check "$fault" grep -q "$fault" output
done
finish "the site in Chromium"
