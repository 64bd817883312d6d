#!/usr/bin/env bash
# lab_check.sh [PAGE..]    opens pages of the lab in headless Chromium, light and dark, and prints them. The console must stay empty, nothing
# may be fetched, links must have targets, and pictures must not be empty. Without a page it makes one. Pictures and the print are saved in
# $B/lab. B is the build. Skipped with a message without Chromium.
set -u
build=$(realpath "${B:-build}")
for chromium in chromium chromium-browser google-chrome chrome-headless-shell; do command -v "$chromium" >/dev/null && break; chromium=; done
if [ -z "$chromium" ]; then echo "skipped: lab-check: no Chromium here: apt-get install chromium"; exit 0; fi
here=$(dirname "$(realpath "$0")")
mkdir -p "$build/lab"
pages=() ; for p in "$@"; do pages+=("$(realpath "$p")"); done
. "$(dirname "$0")/scripts/script.sh"
export XDG_CACHE_HOME=$PWD/cache

if [ ${#pages[@]} = 0 ]; then
    pages=("$build/lab/small.html")
    check "a page" "$build/weft" lab --quick --corpus uniform:1:40,n=200 --hidden 8 --planner random:count=8 --planner streams:slots=8,window=16 --out "${pages[0]}"
fi
look() {                                # PAGE ARGUMENT..: output of the browser goes to the file console
    local page=$1; shift
    timeout 120 "$chromium" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$PWD/profile" --hide-scrollbars --host-resolver-rules='MAP * ~NOTFOUND' \
        --enable-logging=stderr --log-level=0 "$@" "file://$page" >dom 2>console
}
silent() { ! grep -E 'CONSOLE|ERR_' console; }
# Requires a file much larger than an empty page of that size.
picture() {                             # FILE SIZE
    look "$PWD/empty.html" --window-size="$2" --screenshot="$PWD/empty.png"
    [ "$(wc -c <"$1")" -gt $((3 * $(wc -c <empty.png))) ] || { echo "$1 is no picture of a page"; return 1; }
}
echo '<!DOCTYPE html><title>x</title>' >empty.html
# Sorts each table, saves each table and figure, and measures widths: the page in a frame, since Chromium has no window of 360 pixels.
tried() {                               # PAGE WIDTH
    { echo '<!DOCTYPE html><title>x</title><pre id="faults"></pre><script>'; cat "$here/lab_probe.js"; printf '</script><iframe width="%s" height="900" style="border:0" srcdoc="' "$2"
      sed 's/&/\&amp;/g; s/"/\&quot;/g' "$1"; echo '"></iframe>'; } >tried.html
    look "$PWD/tried.html" --window-size=1400,900 --virtual-time-budget=20000 --dump-dom
    grep -o 'id="faults">[^<]*' dom | cut -c13- >faults
    grep -qx 'tried: no fault' faults || { cat faults; return 1; }
}
for page in "${pages[@]}"; do
    stem=$build/lab/$(basename "$page" .html)
    check "$page: in the light" look "$page" --window-size=1280,9000 --screenshot="$stem-light.png"
    check "its console is silent" silent
    check "there is a picture" picture "$stem-light.png" 1280,9000
    check "in the dark" look "$page" --window-size=1280,9000 --blink-settings=preferredColorScheme=0 --screenshot="$stem-dark.png"
    check "its console is silent" silent
    check "there is a picture" picture "$stem-dark.png" 1280,9000
    check "which is another" eval '! cmp -s "$stem-light.png" "$stem-dark.png"'
    check "on a telephone" look "$page" --window-size=400,9000 --screenshot="$stem-narrow.png"
    check "there is a picture" picture "$stem-narrow.png" 400,9000
    for width in 1280 800 360; do check "tables and figures work and fit $width pixels" tried "$page" $width; done
    check "in print" look "$page" --print-to-pdf="$stem.pdf"
    check "there is one" eval 'head -c 5 "$stem.pdf" | grep -q %PDF-'
    check "what it has made of it" look "$page" --dump-dom
    check "all sections" eval '[ "$(grep -o "<section" dom | wc -l)" -ge 13 ]'
    check "every link leads somewhere" eval 'for i in $(grep -oE "href=\"[^\"]*" dom | sed "s/href=\"//" | sort -u); do case $i in "#"*) grep -q "id=\"${i#\#}\"" dom ;; *) false ;; esac || { echo "$i leads nowhere"; exit 1; }; done'
    check "only our script, nothing from elsewhere" eval '[ "$(grep -o "<script" dom | wc -l)" = 1 ] && ! grep -nE "<script[^>]|src=|@import|https?:" <(sed "s|http://www.w3.org/2000/svg||g" dom)'
done
# a faulty page must fail
printf '<!DOCTYPE html><title>x</title><script>nothing.here()</script>' >faulty.html
look "$PWD/faulty.html" --window-size=400,900 --screenshot="$PWD/faulty.png"
check "a fault is seen" eval '! silent >/dev/null'
check "and an empty page" eval '! picture faulty.png 400,900 >/dev/null'
broken() {                              # WHAT SED REASON: with this change the page is refused for this reason
    local reason=$3
    sed "$2" "${pages[0]}" >broken.html
    check "a page whose $1" eval '! cmp -s "${pages[0]}" broken.html && ! tried "$PWD/broken.html" 1280 >/dev/null && grep -q "$reason" faults'
}
broken "tables sort the other way" 's/s\*(y>x?-1:x>y)/s*(x>y?-1:y>x)/' 'is not sorted'
broken "tables are saved without heads" "s/all('tr',t)/all('tbody tr',t)/" 'lines for'
broken "figures are saved as HTML" 's/new XMLSerializer().serializeToString(c)/c.outerHTML+"<br>"/' 'is no SVG'
broken "numbers of figures are missing" 's/<data value="[^"]*"/<data value=""/g' 'numbers are damaged'
broken "tables are too wide" 's/^table{/table{width:3000px;/' 'is 3000 wide'
finish "pages in Chromium"
