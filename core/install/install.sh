#!/usr/bin/env bash
# install.sh install|uninstall    for make, which exports B, PREFIX, LIBDIR, DOCDIR, DESTDIR, VERSION, SOVERSION, F64, DEFINES, LIBS, HEADERS
# and DOCUMENTS. F64 is _f64 for the library of doubles, otherwise empty.
#
# Each installed file is a line of LIBDIR/weft/installed.txt (of doubles: installed_f64.txt). uninstall removes these files and nothing
# else, and of folders only empty ones that are called weft or are below such a folder.
set -eu
fail() { echo "install: $*" >&2; exit 1; }
for v in PREFIX LIBDIR DOCDIR DESTDIR; do
    case ${!v} in *[[:space:]]*) fail "$v=\"${!v}\": expected a folder without spaces, because pkg-config cannot read them" ;; esac
done
[ -n "$PREFIX" ] || fail "PREFIX is empty; expected a folder, / for the root"
for v in PREFIX LIBDIR DOCDIR; do declare "$v=$(realpath -ms "${!v}")"; done
P=${PREFIX%/}

note() { printf '%s\n' "$1" >>"$list"; }                                        # FILE, without DESTDIR
put() { install -D -m "$1" "$2" "$DESTDIR$3" && note "$3"; }                    # MODE FILE TO
link() { ln -sf "$1" "$DESTDIR$2" && note "$2"; }                               # NAME TO
fill() {                                # TEMPLATE TO
    local inside=$LIBDIR
    case $LIBDIR in "$P"/*) inside="\${prefix}/${LIBDIR#"$P"/}" ;; esac
    case $1 in *.cmake.in) inside=$LIBDIR ;; esac
    sed -e "s|@PREFIX@|$PREFIX|; s|@LIBDIR@|$inside|; s|@VERSION@|$VERSION|; s|@F64@|$F64|; s|@DEFINES@|$DEFINES|" \
        -e "s|@TO_PREFIX@|$(realpath -m --relative-to="$LIBDIR" "$PREFIX")|; s|@PRIVATE@|$LIBS|; s| *\$||" "$1" >"$filled"
    put 644 "$filled" "$2"
}

fill_pc() {                             # SUFFIX LIBS PRIVATE
    sed "s|@STATIC@|$1|; s|@LINK@|$2|; s|@PRIVATE@|$3|" core/install/weft.pc.in >"$B/weft.pc.in"
    fill "$B/weft.pc.in" "$LIBDIR/pkgconfig/weft$F64$1.pc"
}

install_all() {
    local f m package=$B/package lib=$LIBDIR/libweft$F64
    list=$B/installed.txt filled=$B/filled
    : >"$list"
    put 755 "$B/libweft.so" "$lib.so.$VERSION"
    link "libweft$F64.so.$VERSION" "$lib.so.$SOVERSION"
    link "libweft$F64.so.$SOVERSION" "$lib.so"
    put 644 "$B/libweft.a" "$lib.a"
    if [ -z "$F64" ] && [ -f "$B/weft" ]; then
        put 755 "$B/weft" "$P/bin/weft"
        put 644 tools/weft.1 "$P/share/man/man1/weft.1"
        put 644 tools/weft.bash "$P/share/bash-completion/completions/weft"
    fi
    [ ! -f "$B/libweft_cuda.so" ] || put 755 "$B/libweft_cuda.so" "$LIBDIR/weft/libweft_cuda$F64.so"
    for m in openmpi mpich; do [ ! -f "$B/libweft_$m.so" ] || put 755 "$B/libweft_$m.so" "$LIBDIR/weft/libweft_$m.so"; done
    for f in $HEADERS; do put 644 "$f" "$P/include/weft/$f"; done
    for f in $(grep -oE "\<weft[a-z_]*\.h" <<<"$HEADERS"); do echo "#include \"weft/$f\"" >"$filled"; put 644 "$filled" "$P/include/$f"; done
    fill_pc '' "-L\${libdir} -lweft$F64" "$LIBS"
    fill_pc _static "\${libdir}/libweft$F64.a $LIBS" ''
    for f in weft-config weft-config-version; do fill "core/install/$f.cmake.in" "$LIBDIR/cmake/weft/$f.cmake"; done
    rm -rf "$package"
    bash lessons/lesson.sh package "$package" >/dev/null
    for f in $(cd "$package" && find . -type f); do put 644 "$package/$f" "$DOCDIR/lessons/${f#./}"; done
    chmod 755 "$DESTDIR$DOCDIR/lessons/lesson.sh"
    for f in $DOCUMENTS; do put "$([ -x "$f" ] && echo 755 || echo 644)" "$f" "$DOCDIR/$f"; done
    # what an earlier version installed is still to be removed one day
    cat "$DESTDIR$LIBDIR/weft/installed$F64.txt" >>"$list" 2>/dev/null || true
    sort -u -o "$list" "$list"
    install -D -m 644 "$list" "$DESTDIR$LIBDIR/weft/installed$F64.txt"
    echo "weft is installed in $DESTDIR$PREFIX."
    case $PREFIX in
    /usr|/usr/local) echo "Run this once, so that programs find it: sudo ldconfig" ;;
    *) echo "Programs: compile with PKG_CONFIG_PATH=$LIBDIR/pkgconfig, or CMAKE_PREFIX_PATH=$PREFIX"
       echo "          link with -Wl,-rpath,$LIBDIR, or run with LD_LIBRARY_PATH=$LIBDIR" ;;
    esac
}

uninstall_all() {
    local f folder lists=()
    for f in "$DESTDIR$LIBDIR"/weft/installed{,_f64}.txt; do [ ! -f "$f" ] || lists+=("$f"); done
    [ ${#lists[@]} != 0 ] || fail "uninstall: there is no $DESTDIR$LIBDIR/weft/installed.txt; give the PREFIX, LIBDIR and DESTDIR of make install"
    sort -ru "${lists[@]}" >"$B/uninstall"
    while read -r f; do rm -f "$DESTDIR$f"; done <"$B/uninstall"
    rm -f "${lists[@]}"
    { sed 's|/[^/]*$||' "$B/uninstall"; echo "$LIBDIR/weft"; } | sort -ru | while read -r folder; do
        while case $folder in */weft|*/weft/*) true ;; *) false ;; esac && rmdir "$DESTDIR$folder" 2>/dev/null; do folder=${folder%/*}; done
    done
}
mkdir -p "$B"
"$1_all"
