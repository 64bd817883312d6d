#!/usr/bin/env bash
# check_in_chromium.sh    every page of $B/site as a browser shows it, see docs/site/look.py: Chromium without a window opens each in the light, in the
# dark, 360 px wide and as on paper; its console is silent, nothing is fetched, no picture is missing, texts can be told from their ground,
# nothing goes over the edge; keys and the search do what they should. It opens every SVG in the light and in the dark, for its texts. Pictures of
# all lie in $B/site/shots. A page and an SVG with all these faults are seen to have them. Skipped with a line where there is no Chromium.
set -u
root=$PWD site=$(realpath "${B:-build}")/site
for chromium in chromium chromium-browser google-chrome chrome-headless-shell; do command -v "$chromium" >/dev/null && break; chromium=; done
if [ -z "$chromium" ]; then echo "skipped: site-check: no Chromium here: apt-get install chromium"; exit 0; fi
. "$root/tests/scripts/script.sh"
export XDG_CACHE_HOME=$PWD/cache
look() { (cd "$root" && sh docs/site/python.sh docs/site/look.py "$1" "$chromium"); }

check "the pages" look "$site"
tail -n 1 out
mkdir faulty
cat >faulty/page.html <<'END'
<!DOCTYPE html><html lang="en"><title>x</title><style>@media (prefers-color-scheme: dark) { .dim { color: #555; background: #444 } }</style>
<p style="color: #aaa; background: #fff">pale</p><p class="dim">dim in the dark</p><div style="width: 900px">wide</div>
<img src="gone.png" alt="gone" /><img src="http://localhost/x.png" alt="elsewhere" /><script>nothing.here()</script></html>
END
cat >faulty/picture.svg <<'END'
<svg xmlns="http://www.w3.org/2000/svg" width="300" height="99"><style>text { fill: #333 } @media (prefers-color-scheme: dark) { text { fill: #ddd } }</style>
<rect width="99" height="99" fill="#c9e6f8"/><text x="9" y="40">on a light box</text></svg>
END
check "faults are seen" says 1 "1 pages in 4 ways, 1 SVGs in 2" look "$PWD/faulty"
for fault in "page.html, light: contrast .* 'pale'" "page.html, dark: contrast .* 'dim in the dark'" "page.html, narrow: is 9.. wide, of 360" "page.html, paper: goes over the edge" \
    "page.html, light: a picture is missing: gone.png" "page.html, light: asks for http://localhost/x.png" "page.html, light: console: .*nothing is not defined" "picture.svg, dark: contrast .* 'on a light box'"; do
    check "$fault" grep -q "$fault" said
done
finish "the site in Chromium"
