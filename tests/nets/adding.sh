#!/usr/bin/env bash
# adding.sh    adds a cell, the update gate RNN (Collins et al. 2017), and an operator, softsign, to a copy of the tree, as docs/design/adding.md
# describes. The copy must build, and both must be correct on every instruction set. BUILD and MAKE come from make.
set -eu
here=$PWD copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
git ls-files -z | xargs -0 cp --parents -t "$copy"
cd "$copy"

after() { grep -q "$2" "$1" || { echo "adding.sh: no \"$2\" in $1"; exit 1; }; sed -i "0,/$2/s//&\n$(sed 's/[&/\]/\\&/g' | sed -z 's/\n$//; s/\n/\\n/g')/" "$1"; }

# ---- the cell: a line and the name of its body, the body, the lesson, the constructor ----
after core/cells.def '^CELL(mgu.*' <<'X'
CELL(ugrnn,    general,    2, 2, 1, (0, 1),        (0, 1),        "z n",     20, "ugrnn")
X
after core/cells.def '^#include "core\/cells\/mgu.cell"' <<'X'
#include "core/cells/ugrnn.cell"
X
cat >core/cells/ugrnn.cell <<'X'
/* ugrnn.cell - the update gate RNN (Collins et al. 2017): z is a sigmoid, n = tanh(W x + U h + b), h' = n + z (h - n). Slots: z, n. */
GATES(ugrnn, 2) { s[0] = SIGMOID(s[0]), s[1] = TANH(s[1]); }
OUT(ugrnn)      { now[0] = FMA(s[0], was[0] - s[1], s[1]); }
BACK(ugrnn)
{
    num z = s[0], n = s[1];
    s[0] = SIGMOID_BACK(d[0] * (was[0] - n), z), s[1] = TANH_BACK(d[0] * (1 - z), n), d[0] = d[0] * z;
}
X
after rnn/api_cell.h '^WEFT_API weft_rnn \*weft_mgu_new.*' <<'X'
/* The update gate RNN of Collins et al. 2017, gates z n: n = tanh(W x + U h + b), h' = (1 - z) n + z h. */
WEFT_API weft_rnn *weft_ugrnn_new(weft_module *m, const char *name, const weft_rnn_opts *opts);
X
after rnn/layers_new.c '^weft_module \*weft_rnn_module.*' <<'X'
weft_rnn *weft_ugrnn_new(weft_module *m, const char *name, const weft_rnn_opts *o) { return known_new(m, name, "ugrnn_new", WEFT__ugrnn, o); }
X
after rnn/composed.c '    case WEFT__mgu: .*' <<'X'
    case WEFT__ugrnn: return ugrnn(d, a, s);
X
sed -i '/^static weft_state cell(const weft__direction/i\
/* Collins et al. 2017: z = sigmoid; n = tanh; h'"'"' = (1 - z) n + z h */\
static weft_state ugrnn(const weft__direction *d, weft_tensor *a, weft_state s)\
{\
    int64_t H = weft_size(s.h, 1);\
    weft_tensor *sums = weft_add(a, affine(s.h, d->in[WEFT__W_HH], d->in[WEFT__B_HH]));\
    weft_tensor *z = weft_sigmoid(gate(sums, 0, H)), *n = weft_tanh(gate(sums, 1, H));\
    return (weft_state){ weft_add(n, weft_mul(z, weft_sub(s.h, n))), NULL };\
}\
' rnn/composed.c

# ---- the operator: its line, its declaration, its function ----
after core/shared/pointwise.def '^UNARY(softplus.*' <<'X'
UNARY(softsign,   x / (1 + fabs(x)),               1 / ((1 + fabs(x)) * (1 + fabs(x))), R((x < 0) - (x > 0)) * 2 / ((1 + fabs(x)) * (1 + fabs(x)) * (1 + fabs(x))), .1, 2)
X
after autograd/api_autograd.h '^WEFT_API weft_tensor \*weft_gelu.*' <<'X'
WEFT_API weft_tensor *weft_softsign(weft_tensor *x);
X
after autograd/ops/pointwise.c '^weft_tensor \*weft_softplus.*' <<'X'
weft_tensor *weft_softsign(weft_tensor *x) { return unary(WEFT__softsign, x, 0, 0); }
X

lines() { { diff "$here/$1" "$copy/$1" 2>/dev/null || :; } | grep -c '^>' || :; }
of_cell=$(($(lines core/cells.def) + $(wc -l <core/cells/ugrnn.cell) + $(lines rnn/api_cell.h) + $(lines rnn/composed.c)))

cat >stranger.c <<'X'
#include <math.h>
#include "weft_op.h"
static weft_tensor *total(weft_tensor *const *x, void *user) { (void)user; return weft_sum_all(weft_softsign(x[0])); }
int main(void)
{
    weft *w = weft_open(&(weft_opts){ .seed = 1 });
    weft_rnn *r = weft_ugrnn_new(weft_module_new(w, "m"), "r", &(weft_rnn_opts){ .input = 3, .hidden = 37, .layers = 2, .bidirectional = true });
    const weft_lengths l = { 3, (int32_t[]){ 4, 0, 9 }, NULL };
    weft_real y[2][13 * 74], dx[2][13 * 3], v[13 * 3];
    for (int i = 0; i < 39; i++)
        v[i] = (weft_real)sin(i);
    for (int way = 0; way < 2; way++) {
        weft_tensor *x = weft_ragged(w, v, 3, &l), *d;
        weft_rnn_set_composed(r, way);
        weft_tensor *out = weft_rnn_run(r, x, WEFT_ZERO_STATE).y;
        weft_gradients(weft_sum_all(weft_square(out)), &x, 1, &d);
        weft_read(weft_plain(weft_to_layout(out, WEFT_CONCAT)), y[way], sizeof y[way]);
        weft_read(weft_plain(weft_to_layout(d, WEFT_CONCAT)), dx[way], sizeof dx[way]);
    }
    double worst = 0;
    for (int i = 0; i < 13 * 74; i++)
        worst = fmax(worst, fabs((double)(y[0][i] - y[1][i])));
    for (int i = 0; i < 39; i++)
        worst = fmax(worst, fabs((double)(dx[0][i] - dx[1][i])));
    weft_tensor *x = weft_reals(w, (weft_real[]){ -1, (weft_real).5, 2 }, WEFT_SHAPE(3));
    double error = weft_gradcheck(total, &x, 1, 1, NULL);
    int good = weft_ok(w) && worst < 1e-5 && error < 2e-2;
    printf("%s: cell %.1e, operator %.1e %s\n", weft_device_name(w), worst, error, weft_error_message(w));
    weft_close(w);
    return !good;
}
X
${MAKE:-make} --no-print-directory -s NVCC=none BUILD=build V= build/libweft.a >log 2>&1 || { tail -n 20 log; exit 1; }
# shellcheck disable=SC2046
${CC:-cc} -std=c11 -D_GNU_SOURCE -I. -o stranger stranger.c build/libweft.a $(${PKG_CONFIG:-pkg-config} --libs hdf5 zlib) -ldl -lm -lpthread
good=0 all=0
for isa in ref generic avx2 avx512; do
    case $isa in avx2|avx512) grep -qw "${isa/avx512/avx512dq}" /proc/cpuinfo || continue ;; esac
    all=$((all + 1))
    if [ $isa = ref ]; then WEFT_DEVICE=ref ./stranger && good=$((good + 1)); else WEFT_DEVICE=cpu WEFT_ISA=$isa ./stranger && good=$((good + 1)); fi
done
all=$((all + 1))
if [ "$of_cell" -le 35 ]; then good=$((good + 1)); fi
echo "the cell took $of_cell lines in cells.def, its body, api_cell.h and composed.c (35), and one in layers_new.c"
echo "$good of $all additions hold"
[ $good = $all ]
