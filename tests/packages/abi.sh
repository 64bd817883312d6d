#!/usr/bin/env bash
# abi.sh    compares the binary interface of $BUILD/libweft.so with the last release: the last tag v*, or, without tags, the commit that set
# today's version number. RELEASE=commit compares with another one. An incompatible change fails unless the library's name (soname) has
# changed. A function that is removed since a tag fails unless CHANGELOG.md names it. The report is $BUILD/abi/report. MAKE, CC and BUILD
# come from make.
set -eu
skip() { echo "skipped: abi: $*"; exit 0; }
sh tests/deps.sh abi >/dev/null 2>&1 || skip "abidiff is missing and cannot be installed (sh tests/deps.sh abi)"
release=${RELEASE:-$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || true)}
tag=$release
release=${release:-$(git log -1 --format=%H -G'define WEFT_VERSION_(MAJOR|MINOR|PATCH)' -- core/api_core.h 2>/dev/null || true)}
commit=$(git rev-parse -q --verify "${release:-none}^{commit}" 2>/dev/null) || skip "the last release is not in this clone's history"
out=$(realpath -m "$BUILD/abi") old=$out/$commit
public() { find . -name build -prune -o \( -name 'weft*.h' -o -name 'api_*.h' \) -print; }

if [ ! -e "$old/libweft.so" ]; then     # its debugging information has the types
    rm -rf "$old"
    mkdir -p "$old/tree"
    git archive "$commit" | tar -x -C "$old/tree"
    (cd "$old/tree" && env -u MAKEFLAGS -u MAKELEVEL "$MAKE" -s NVCC=none V= BUILD=build CC="$CC" CFLAGS='-O0 -g' build/libweft.so) >"$out/build.log" 2>&1 ||
        { tail -n 20 "$out/build.log"; echo "abi: the release $commit does not build"; exit 1; }
    mkdir "$old/include"
    (cd "$old/tree" && public | xargs cp -t "$old/include")
    mv "$old/tree/build/libweft.so" "$old/libweft.so"
    rm -rf "$old/tree"
fi
rm -rf "$out/include"
mkdir -p "$out/include"
public | xargs cp -t "$out/include"

rc=0
abidiff --no-show-locs --drop-private-types --hd1 "$old/include" --hd2 "$out/include" "$old/libweft.so" "$BUILD/libweft.so" >"$out/report" || rc=$?
[ $((rc & 3)) = 0 ] || { cat "$out/report"; echo "abi: abidiff has failed"; exit 1; }
soname() { readelf -d "$1" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p'; }
names() { nm -D --defined-only "$1" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort -u; }
before=$(soname "$old/libweft.so") after=$(soname "$BUILD/libweft.so") bad=0
removed=$(comm -23 <(names "$old/libweft.so") <(names "$BUILD/libweft.so"))
unnamed=
for f in $removed; do                   # CHANGELOG.md has the name, or its beginning with * behind it
    grep -oE 'weft_[a-z0-9_]+\*?' CHANGELOG.md | awk -v f="$f" '
        { p = $0; if (sub(/\*$/, "", p) ? index(f, p) == 1 : p == f) found = 1 } END { exit !found }' || unnamed="$unnamed $f"
done
[ -z "$unnamed" ] || echo "removed, but not named in CHANGELOG.md:$unnamed" >>"$out/report"
if [ -n "$unnamed" ] && [ -n "$tag" ]; then tail -n 1 "$out/report"; bad=1; fi
if [ $((rc & 8)) != 0 ] && [ "$before" = "$after" ]; then
    cat "$out/report"
    echo "$after is incompatible with the release $release; the next release needs another minor version"
    bad=1
fi
count() { echo "$*" | wc -w; }
echo "abi: $after against $before of ${release:0:12}: $(names "$BUILD/libweft.so" | wc -l) functions," \
    "$(count $removed) removed, $(count $unnamed) of them not in CHANGELOG.md, $([ $((rc & 8)) = 0 ] && echo compatible || echo incompatible)"
[ $bad = 0 ]
