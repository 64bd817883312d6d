#!/usr/bin/env bash
# exports.sh declared|labels|exported|compare    prints the functions that the public headers declare, the asm labels of some of them, or the
# exports of $B/libweft.so; compare checks that the exports are exactly the first two. It reads declarations after the preprocessor, where
# WEFT_API is an attribute.
set -u
declarations() {
    printf '#include "%s"\n' weft*.h | ${CC:-cc} -E -P -I. ${V:+$([ "${V#d}" != "$V" ] && echo -DWEFT_DOUBLE)} -x c - | tr '\n' ' ' | tr ';' '\n' |
        sed -n 's/.*__attribute__ *((visibility("default")))//p'
}
labels() { declarations | sed -n 's/.*__asm__ *( *"\([a-z0-9_]*\)" *).*/\1/p' | sort -u; }
declared() {
    declarations |
        awk '{ depth = 0; word = ""
               for (i = 1; i <= length($0); i++) {
                   c = substr($0, i, 1)
                   if (c == "(") { if (depth == 0 && word ~ /^weft_/) print word; depth++; word = "" }
                   else if (c == ")") { depth--; word = "" }
                   else if (c ~ /[A-Za-z0-9_]/) word = word c
                   else if (c != " " || i < length($0) && substr($0, i + 1, 1) != "(") word = ""
               } }' | sort -u
}
exported() { nm -D --defined-only "$B/libweft.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u; }
compare() {
    d=$(diff <({ declared; labels; } | sort -u) <(exported)) && return
    echo "declared (<) and exported (>) differ:"; echo "$d" | grep '^[<>]'; return 1
}
"${1:-compare}"
