#!/usr/bin/env bash
# planted.sh    checks that each safety net catches the bug planted for it, with the expected message. MAKE and BUILD come from make.
# NETS=TEXT runs only nets whose line below contains the text. One net per core runs at a time, each in its own folder ($into). Common programs
# are built first.
set -u
all=0 flags="-std=c11 -D_GNU_SOURCE -I. -O1 -c" libraries="$(${PKG_CONFIG:-pkg-config} --libs hdf5 zlib) -ldl -lm -lpthread"
folder=$BUILD/planted
rm -rf "$folder"; mkdir -p "$folder"
build() {                               # VARIANT TARGET...
    local out v=$1; shift
    out=$($MAKE -s -j"$(nproc)" V="$v" "$@" 2>&1 </dev/null) || { printf '  FAIL  what the nets need is not built\n%s\n' "$out"; exit 1; }
}
net() {                                 # FUNCTION ARGUMENT...
    [[ "$*" == *"${NETS:-}"* ]] || return
    all=$((all + 1))
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
    into=$folder/$all
    { mkdir "$into"; "$@"; rm -rf "$into"; } >"$folder/$all.log" 2>&1 </dev/null &
}
if [ -z "${NETS:-}" ]; then
    build asan "$BUILD/asan/tests/planted/leak"
    build double "$BUILD/double/tests/planted/derivative"
    build tsan "$BUILD/tsan/tests/planted/race"
fi
tests() { sed -nE 's/^net test_catches .* ([a-z]+\/test_[a-z_]+)$/\1/p' tests/nets/planted.sh | sort -u | sed "s|.*|$BUILD/tests/&.o|"; echo "$BUILD/tests/failing_malloc.o"; }
# shellcheck disable=SC2046
build '' "$BUILD/tests/planted/block" "$BUILD/tests/planted/corrupt" "$BUILD/tests/hunt/hunt" "$BUILD/examples/g2p" "$BUILD/tests/nets/starve_malloc.so" "$BUILD/weft" \
    "$BUILD/tests/parallel/train" "$BUILD/tests/parallel/carry" "$BUILD/tests/parallel/ranks" "$BUILD/emu/libnccl.so" "$BUILD/tests/cross/files" $(tests)

hdf5=$(${PKG_CONFIG:-pkg-config} --cflags hdf5 zlib)
# Prints the verdict: a net holds if it failed and its output matches all WORDS.
verdict() {                             # NET STATUS OUTPUT WORDS...
    local words missing=
    for words in "${@:4}"; do printf '%s' "$3" | grep -qE -e "$words" || missing=1; done
    if [ "$2" != 0 ] && [ -z "$missing" ]; then printf '  ok    %s\n' "$1"; return; fi
    printf '  FAIL  %s: not caught (exit status %s)\n' "$1" "$2"
    printf '%s\n' "$3" | tail -n 30 | sed 's/^/        | /; s/ failed/ refused/'
}
# Compiles a source of the library with a bug and links PROGRAM from it and OBJECT... SED must change the source.
plant() {                               # NET SOURCE SED PROGRAM OBJECT...
    local out name=$1 program=$4
    sed -E "$3" "$2" >"$into/planted.c"
    if cmp -s "$2" "$into/planted.c"; then echo "  FAIL  $name: there is no such place in $2"; return 1; fi
    # shellcheck disable=SC2086
    if ! out=$({ ${CC:-cc} $flags $hdf5 -o "$into/planted.o" "$into/planted.c" &&
            ${CC:-cc} -o "$into/$program" "${@:5}" "$into/planted.o" "$BUILD/libweft.a" -Wl,--as-needed -lcriterion -ljansson $libraries; } 2>&1 </dev/null); then
        printf '  FAIL  %s: does not build\n%s\n' "$name" "$out"
        return 1
    fi
}

fuzz_catches() {                        # NET READER RUNS WORDS. One at a time, as they share the folder of the fuzzers
    local out rc
    out=$(flock "$folder" $MAKE -s BUILD="$BUILD" fuzz READERS="$2" RUNS="$3" 2>&1 </dev/null) && rc=0 || rc=$?
    verdict "$1" $rc "$out" "$4"
}
# These take longest.
net fuzz_catches "a byte that a reader loses, by the fuzzers"   planted         300000 '1 silent changes'
net fuzz_catches "a shape that is not checked, by the fuzzers"  planted_weights 100000 'heap-buffer-overflow'
net fuzz_catches "an extent that is not checked, by the fuzzers" planted_onnx   300000 'heap-buffer-overflow'

catches() {                             # NET VARIANT PROGRAM WORDS
    local b=$BUILD${2:+/$2} out rc
    case $3 in
    race) out=$(TSAN_OPTIONS=exitcode=66 "$b/tests/planted/race" 2>&1 </dev/null) && rc=0 || rc=$?
          if [ $rc != 66 ]; then out=$(TSAN_OPTIONS=exitcode=66 setarch -R "$b/tests/planted/race" 2>&1 </dev/null) && rc=0 || rc=$?; fi ;;
    *)    mkdir -p "$into/tests"; cp "$b/tests/planted/$3" "$into/test_$3"
          out=$(B=$into V=none bash tests/run.sh "$into/test_$3" 2>&1 </dev/null) && rc=0 || rc=$? ;;
    esac
    verdict "$1" $rc "$out" "$4"
}
net catches "a leak, by the address sanitizer"    asan   leak       'LeakSanitizer: detected memory leaks'
net catches "a block that is not freed, by CLEAN"    ''     block      '1 blocks were not freed'
net catches "a wrong derivative, by gradcheck"    double derivative 'gradcheck: off by'
net catches "a race, by the thread sanitizer"     tsan   race       'ThreadSanitizer: data race'
net catches "a corrupt file, by its checksums"    ''     corrupt    'load: EFORMAT'

# The hunt finds an operator that reads its neighbour in memory, and reduces the program to it.
hunt_catches() {
    local out rc
    out=$("$BUILD/tests/hunt/hunt" 40 1 --isa generic --planted 2>&1 </dev/null) && rc=0 || rc=$?
    verdict "a neighbour that is read, by the hunt" $rc "$out" 'width [0-9]+(, second derivatives)?: neighbour$' '^hunt: 40 programs .* [1-9][0-9]* differences$'
}
net hunt_catches
# The default programs of `make hunt` find a bug that needs nine sequences.
hunt_catches_library() {                # NET SOURCE SED
    local rc out
    plant "$1" "$2" "$3" hunt "$BUILD"/tests/hunt/*.o || return
    out=$("$into/hunt" 300 1 --isa generic 2>&1 </dev/null) && rc=0 || rc=$?
    verdict "$1" $rc "$out" '^hunt: 300 programs .* [1-9][0-9]* differences$'
}
net hunt_catches_library "rows for ids in batches of more than 8, by the hunt" autograd/ops/dropout.c 's/r     \? r->id :/r ? (d->per_sequence \&\& x->batch->n > 8 ? NULL : r->id) :/'

# A net that is a script around examples/g2p, linked with a changed source of the library. SED must change it.
script_catches() {                      # NET SOURCE SED WORDS SCRIPT ENVIRONMENT...
    local rc out
    plant "$1" "$2" "$3" g2p "$BUILD"/examples/g2p*.o "$BUILD/examples/common.a" || return
    out=$(env G2P="$(realpath "$into/g2p")" B="$BUILD" "${@:6}" bash "tests/nets/$5" 2>&1 </dev/null) && rc=0 || rc=$?
    verdict "$1" $rc "$out" "$4"
}
net script_catches "a file written in place, by kills"      core/os_files.c 's/openat\(t->folder, t->temporary,/openat(t->folder, t->base,/; s/O_CREAT \| O_EXCL/O_CREAT | O_TRUNC/; s/weft__open_nameless\(t->folder\)/-1/; s/renameat\(.*\) == 0;/true;/' \
    'kill: .* [1-9][0-9]* (differ|lost),' kill.sh KILLS=60
net script_catches "an unchecked allocation, by starving"   io/checkpoint/checkpoint.c 's/if \(!\*host\)/if (0)/' 'starve: .* [1-9][0-9]* crashes' starve.sh
# A net that is a test, linked with a changed source of the library. SED must change it.
test_catches() {                        # NET SOURCE SED TEST
    local rc out
    plant "$1" "$2" "$3" test "$BUILD/tests/$4.o" "$BUILD/tests/failing_malloc.o" || return
    out=$("$into/test" 2>&1 </dev/null) && rc=0 || rc=$?
    verdict "$1" $rc "$out" 'Failing: [1-9]'
}
net test_catches "an order that is not drawn, by drawing it before" plan/chunk.c 's/weft__plan_random_order\(o, n\)/weft__plan_order(n)/' plan/test_shuffle
net test_catches "a fuller row that is closed, by data without end"  plan/slots.c 's/weft__bins_add\(heap, slots, cost\[i\]\)/weft__bins_add(heap, slots, cost[order[n - 1 - k]])/' plan/test_endless
net test_catches "squares of a row counted as tokens"        plan/fits.c 's/-= length \* length/-= length/' plan/test_room
net test_catches "ranks with unequal causal attention"       plan/split.c 's/2 \* t->ranks - 1 - r, true/r + t->ranks, true/' plan/test_room
net test_catches "a piece not at a multiple of align"        plan/check.c 's/if \(t->p->align > 1 \&\& \(/if (0 \&\& (/' plan/test_room
net test_catches "a step's rows counted one too many, by their sum"  plan/cost.c 's/step_ms\(c, \(double\)k\)/step_ms(c, (double)k + 1)/' plan/test_cost
net test_catches "a running sum's gradient in its own direction" autograd/ops/reduce.c 's/a\.flag = !a\.flag;//' autograd/test_ops
net test_catches "packed weights of before a change"        autograd/tape/packed_weights.c 's/same = k->of\[i\]\.version == .*;/same = true;/' rnn/test_step
net test_catches "a projection of another row"              rnn/step.c 's/id\[i\] < 0 \? \(int32_t\)rows : id\[i\]/id[i] < 0 ? 0 : id[i]/' rnn/test_step
net test_catches "a gate and a skip in different layouts"  autograd/ops/norm.c 's/i = s->batch \? 1 : 0;/i = 0;/' forecast/test_blocks
net test_catches "a head's parameters at another's offset"  autograd/ops/concat_lists.c 's/Y\(c, i \/ n\) \+ i % n \* w/Y(c, i \/ n) + (n - 1 - i % n) * w/' forecast/test_blocks
net test_catches "a head's gradient from another's offset"  autograd/ops/concat_lists.c 's/\.x = dy \+ i % n \* w/.x = dy/' forecast/test_blocks
net test_catches "last states of the other direction"       rnn/state_rows.c 's/last\[k % m->directions\]\.device/last[0].device/' rnn/test_rnn_use
net test_catches "an empty sequence without its first state"  rnn/state_rows.c 's/m\.given\[s\] = stack && e->empty\.host/m.given[s] = false/' rnn/test_rnn
net test_catches "a beam that is dropped too early"         rnn/beam.c 's/!\(best_penalised\(b, b->next\.score\[from \+ alive - 1\], length\)/!(penalised(b, b->next.score[from + alive - 1], length)/' rnn/test_beam
net test_catches "a state of another row"                   rnn/decoder.c 's/all = d->next\.parent\[r\] == r;/all = true;/' rnn/test_decode
net test_catches "parts of a weight that share a cached copy"  autograd/ops/linear.c 's/WEFT__PACK_PART \+ \(int\)\(attributes_of\(c\)->from \/ attributes_of\(c\)->rows\)/WEFT__PACK_PART/' rnn/test_step
net test_catches "a forecast from another series' window"   rnn/forecast/rolling.c 's/predicted \+= r->future_len\[i\+\+\] \* columns/i++/' forecast/test_rolling_forecast
net test_catches "masks by the index within a shard"        parallel/update.c 's/b->id\[i\] = b->place\[i\];/b->id[i] = i;/' parallel/test_shards
net test_catches "a mean of means"                          parallel/update.c 's/p->shards == 1 \? weft_mean_loss/true ? weft_mean_loss/' parallel/test_shards
net test_catches "masks of sequences without known ids"     autograd/ops/dropout.c 's/if \(!shard \|\| kept/if (true || kept/' parallel/test_shards
# Ranks of tests/parallel/pairs.c, linked with a changed source.
ranks_catch() {                         # NET SOURCE SED PARTS WORDS
    local rc out program
    for program in train carry; do plant "$1" "$2" "$3" $program "$BUILD/tests/parallel/$program.o" || return; done
    out=$(B="$BUILD" TRAIN=$(realpath "$into/train") CARRY=$(realpath "$into/carry") PARTS=$4 WEFT_PARALLEL_TIMEOUT=5 bash tests/scripts/test_parallel.sh 2>&1 </dev/null) && rc=0 || rc=$?
    verdict "$1" $rc "$out" "not so: .*$5"
}
net ranks_catch "sums in the order of arrival, by other ranks' bytes" parallel/exchange.c \
    's/^    int middle = weft__tree_middle\(tree\);/    for (int i = 1; n \&\& i < x->terms; i++) weft__add(x->p, n, x->term[0].x, x->term[i].x);\n    if (n) return x->term[0].x;\n&/' bytes 'the same bytes'
net ranks_catch "a ring in place of the tree, by other ranks' bytes"  parallel/exchange.c \
    's/^    int middle = weft__tree_middle\(tree\);/    int own = x->p->done, last = x->terms - 1;\n    for (int i = last; n \&\& i > own; i--) weft__add(x->p, n, x->term[i - 1].x, x->term[i].x);\n    if (n) { weft__add(x->p, n, x->term[0].x, x->term[own].x); return x->term[0].x; }\n&/' bytes 'the same bytes'
net ranks_catch "an update that one rank skips, without a check"      parallel/collective.c \
    's/if \(a->print\[i\] != b->print\[i\]\)/if (n > 99)/' failures 'an update that one skips'

net ranks_catch "gradients sent before they are final"                parallel/overlap.c \
    's/p->least\[x->posted\] >= entry/p->least[x->posted] >= entry - 1/' bytes 'the same bytes'
net ranks_catch "chunks of a failed update that stay in transit"       parallel/overlap.c \
    's/^    weft__exchange\(p\);//' failures 'the same bytes'
net ranks_catch "no barrier after a common call, by ranks that continue" parallel/lost_rank.c \
    's/^    return weft__all_gather\(p, "the end of/    return true;\n&/' goes_on 'each rank killed'
net ranks_catch "a link to GPUs that outlives one of its ranks"        parallel/lost_rank.c \
    's/^    weft__link_down\(p\);.*//' linked_on 'the others continue'
net ranks_catch "a half sent before it is summed"                      parallel/halving.c \
    's/^        d->k->scale\(d, keeps\.n.*//' linked 'the same bytes'
net ranks_catch "no check of the next rank while a GPU waits"          parallel/gpu_link.c \
    's/: p->transport->test\(p->linked\.next\.number\);/: 0;/' linked_on 'the others continue'
net ranks_catch "results by their index within a shard"                parallel/gather.c \
    's/return p->w->status \? -1 : b->place\[from \+ i\];/return p->w->status ? -1 : i;/' gathered 'results alone'
net ranks_catch "results without an end mark"                          parallel/gather.c \
    's/, 0xFF, /, 0, /' gathered 'results of 3 ranks'
net ranks_catch "a rank without memory that does not report it"        parallel/gather.c \
    's/if \(!weft__agree\(p, its_results, NULL, 0\)\)/if (p->w->status)/' gathered 'one has no memory for them'

net ranks_catch "a file without the states of all ranks"                parallel/states.c \
    's/if \(q == p->world\.rank\)/if (1)/' carried 'the same bytes'
net ranks_catch "an unreported loss of a rank's states"                   parallel/await.c \
    's/ && !p->batch\.carries\)/)/' carried 'a rank is lost with its states'
net test_catches "a state that would leave its shard"       plan/split.c 's/if \(shard_of\(t, from->row\) != shard_of\(t, s->row\)\)/if (0)/' plan/test_split

# Compares the planners' definitions in Python with a command linked with a changed source.
definitions_catch() {                   # NET SOURCE SED WORDS
    local rc out
    plant "$1" "$2" "$3" weft "$BUILD"/tools/*.o "$BUILD"/tools/*/*.o || return
    out=$(B=$into V='' bash tests/scripts/test_reference.sh 2>&1 </dev/null) && rc=0 || rc=$?
    verdict "$1" $rc "$out" "$4"
}
if command -v python3 >/dev/null; then
    net definitions_catch "a bound a little wrong, by its definition in Python" plan/figures.c 's/(len\[order\[long_ones\]\]) > capacity/\1 >= capacity/' 'l2 is [0-9]+, by its definition'
    net definitions_catch "a planner's rule a little wrong, by its second writing" plan/fits.c 's/weft__gaps_at_least\(b->gaps, length\)/weft__gaps_at_least(b->gaps, length + 1)/' 'by its definition'
else echo "  no python3: the definitions of planners had no bug to catch"; fi
copy_tree() { git ls-files -z | xargs -0 cp --parents -t "$into"; }
# A bug that only another CPU has.
cross_catches() {                       # NET FILE SED
    local out rc b; b=$(realpath "$BUILD")
    copy_tree; sed -Ei "$3" "$into/$2"
    out=$(cd "$into" && B=$b BUILD=build bash tests/cross.sh quick 2>&1 </dev/null) && rc=0 || rc=$?
    verdict "$1" $rc "$out" 'golden vectors: layers +BAD'
}
if command -v qemu-aarch64-static >/dev/null; then net cross_catches "a product with the wrong sign, by NEON under qemu" core/cpu/vector.h 's/V_NEON\(fma\)/V_NEON(fms)/'
else echo "  no qemu: make cross had no bug to catch"; fi
# Checks each rule of lint in a copy of the tree where one line violates it.
lint_catches() {                        # NET RULE FILE LINE WORDS: LINE is added at the end of FILE, or is /WORD/d
    local out rc b; b=$(realpath "$BUILD")
    copy_tree
    case $4 in /*/d) sed -i "$4" "$into/$3" ;; *) printf '%s\n' "$4" >>"$into/$3" ;; esac
    out=$(cd "$into" && git init -q . && git add -A && B=$b WEFT_NO_TIDY=1 ONLY=$2 bash tests/lint.sh 2>&1 </dev/null) && rc=0 || rc=$?
    if [ $rc != 0 ] && printf '%s' "$out" | grep -qF "$5"; then printf '  ok    %s, by lint\n' "$1"
    else printf '  FAIL  lint did not catch %s (exit status %s)\n' "$1" "$rc"; printf '%s\n' "$out" | tail -n 30 | sed 's/^/        | /'; fi
}
net lint_catches "a floor that includes one above it"    include_order            io/text.c          '#include "rnn/rnn.h"'             'io/text.c may not include rnn/ (rnn/rnn.h)'
net lint_catches "a private header of another floor"     walls                    nn/clip.c          '#include "core/inside.h"'          'nn/clip.c may not include core/inside.h'
net lint_catches "a comment without a verb"              plain              core/api_author.h        '/^.. Returns WEFT_REAL or WEFT_I32/d' 'begins with'
net lint_catches "a message of another form"            plain                  nn/clip.c          'static const char *const other = "a number is expected";' 'expected X'
net lint_catches "a map that lacks a floor"              map                      README.md          '/^. `nn/d'                         'README.md lacks: | `nn/`'
net lint_catches "forecasting known below its room"      include_order            rnn/states.c       '#include "rnn/forecast/forecast.h"' 'rnn/states.c may not include rnn/forecast/ (rnn/forecast/forecast.h)'
net lint_catches "a header that declares another floor's" declared_where_defined  nn/nn.h            'void weft__ids_of(void);' 'weft__ids_of is declared in nn/nn.h'
net lint_catches "a function without a caller"           callers            nn/api_nn.h              'WEFT_API void weft_never_''tried(void);' 'weft_never_tried has no caller'
net lint_catches "a function without its row"            api_page           docs/api.md              '/weft_topk/d'                     'docs/api.md differs from the headers'
net lint_catches "a document that names a removed function" documents_name_what_is   docs/tutorial.md   'Call `weft_renamed_''long_ago`.'  'is in a document only'
net lint_catches "a file that a comment alone names"       documents_name_what_is   nn/clip.c          '/* nowhere_at_all.c: clips. */'      'nowhere_at_all.c does not exist'
net lint_catches "a room above its budget"               budgets                  plan/plan.h        "$(printf '/* */\n%.0s' {1..200})"  'over its budget'
net lint_catches "a line too long for a public header"   columns                  nn/api_nn.h        "/* $(printf 'x%.0s' {1..96}) */"  'nn/api_nn.h:'
net lint_catches "a line too long for code on a page"    code_of_pages            docs/tutorial.md   $'```c\n'"x = $(printf '1 + %.0s' {1..22})"$'1;\n```' 'docs/tutorial.md:'
net lint_catches "a typed result"                        lessons_type_no_results  lessons/03_bptt/lesson.md 'It is 3.1415 here.' 'lessons/03_bptt/lesson.md: 3.1415'
net lint_catches "a function of 41 lines"                function_sizes           nn/clip.c          "int long_one(void)"$'\n{'"$(printf '\n    ;%.0s' {1..38})"$'\n}' 'nn/clip.c: long_one has 41 lines'

# The check of documents: in each page one block prints something else than the page shows.
page_catches() {                        # NET WORDS SHOWN: the text below a block that prints 1.25
    local out rc page=$into/page.md
    printf '```c\nprintf("%%.2f of it\\n", 1.25);\n```\n%s\n' "$3" >"$page"
    if out=$(B=$BUILD V='' bash tests/doccheck.sh "$page" 2>&1 </dev/null); then rc=0; else rc=1; fi
    if [ "$rc" = "$([ -n "$2" ] && echo 1 || echo 0)" ] && printf '%s' "$out" | grep -qF "$2"; then printf '  ok    %s, by doccheck\n' "$1"
    else printf '  FAIL  doccheck: %s (exit status %s)\n%s\n' "$1" "$rc" "$out"; fi
}
net page_catches "output missing on the page"     'prints what is not shown'  ''
net page_catches "another number than the page's" 'the page shows "1.28 of it", it prints "1.25 of it"' $'```text\n1.28 of it\n```'
net page_catches "another word than the page's"   'it prints "1.25 of it"'    $'```text\n1.25 of us\n```'
net page_catches "a line that is not printed"     'the page shows "2"'        $'```text\n1.25 of it\n2\n```'
net page_catches "a line that is not shown"       'the page shows ""'         $'```text\n```'
net page_catches "nothing if all agrees"          ''                          $'```text\n1.25 of ..\n```'
wait
for ((i = 1; i <= all; i++)); do cat "$folder/$i.log"; done
good=$(cat "$folder"/*.log | grep -c '^  ok ')
echo "$good of $all nets hold"
[ "$good" = "$all" ]
