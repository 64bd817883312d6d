#!/bin/sh
# nvcc.sh OBJECT NVCC FLAG.. -c SOURCE    compiles a source and keeps its PTX in folder $PTX, one file for each architecture of $VIRTUAL.
# A source that is compiled once gets links to the file of $OLDEST. Registers and spills are written to OBJECT.usage.
object=$1; shift
base=${object%.o} name=$(basename "$object" .o)
rm -rf "$base.kept"
mkdir -p "$base.kept" "$PTX"
"$@" --keep --keep-dir "$base.kept" -Xptxas -v -o "$object" 2>"$base.usage" || { cat "$base.usage"; exit 1; }
rm -f "$PTX/$name".*.ptx
for p in "$base.kept"/*.ptx; do
    mv "$p" "$PTX/$name.$(sed -n 's/^.target sm_//p' "$p").ptx"
done
rm -r "$base.kept"
cd "$PTX" || exit 1
for a in $VIRTUAL; do
    [ -e "$name.$a.ptx" ] || ln -s "$name.$OLDEST.ptx" "$name.$a.ptx"
done
