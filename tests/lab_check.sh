#!/usr/bin/env bash
# lab_check.sh [PAGE..]    opens pages of the lab in headless Chromium, light and dark, and prints them. The console must stay empty, nothing
# may be fetched, links must have targets, and pictures must not be empty. Without a page it makes one. Pictures and the print are saved in
# $B/lab. B is the build. Skipped with a message without Chromium.
set -u
build=$(realpath "${B:-build}")
for chromium in chromium chromium-browser google-chrome chrome-headless-shell; do command -v "$chromium" >/dev/null && break; chromium=; done
if [ -z "$chromium" ]; then echo "skipped: lab-check: no Chromium here: apt-get install chromium"; exit 0; fi
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
    check "in print" look "$page" --print-to-pdf="$stem.pdf"
    check "there is one" eval 'head -c 5 "$stem.pdf" | grep -q %PDF-'
    check "what it has made of it" look "$page" --dump-dom
    check "all sections" eval '[ "$(grep -o "<section" dom | wc -l)" -ge 13 ]'
    check "every link leads somewhere" eval 'for i in $(grep -oE "href=\"[^\"]*" dom | sed "s/href=\"//" | sort -u); do case $i in "#"*) grep -q "id=\"${i#\#}\"" dom ;; *) false ;; esac || { echo "$i leads nowhere"; exit 1; }; done'
    check "no script, nothing from elsewhere" eval '! grep -nE "<script|src=|@import|https?:" dom'
done
# a faulty page must fail
printf '<!DOCTYPE html><title>x</title><script>nothing.here()</script>' >faulty.html
look "$PWD/faulty.html" --window-size=400,900 --screenshot="$PWD/faulty.png"
check "a fault is seen" eval '! silent >/dev/null'
check "and an empty page" eval '! picture faulty.png 400,900 >/dev/null'
finish "pages in Chromium"
