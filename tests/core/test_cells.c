/* test_cells.c - tests the bodies in core/cells.def. Central differences in double check each backward. The
 * maps must agree with the counts in the same entry, and the flag for reading only the last state must be
 * right. */
#include <math.h>
#include "core/inside.h"
#include "tests/check.h"

#define num     double
#define CELL_FN static inline
#define BODIES
#include "core/cells/words.h"
#include "core/cells.def"
#undef BODIES

typedef void forward_fn(double *, const double *, double *);
typedef void back_fn(double *, const double *, const double *, double *);
#define CELL(name, gpu, gates, slots, states, ...) \
    { #name, gates, slots, states, name##_first, name##_gates, name##_out, name##_back },
static const struct {
    const char *name;
    int gates, slots, states, first;
    forward_fn *gates_of, *out;
    back_fn *back;
} cells[] = {
#include "core/cells.def"
};

/* Returns a random weighted sum of a unit's outputs h and c. x: its sums, then its previous states. */
static double loss_of(int cell, const double *x, const double *weight)
{
    double s[4], now[2] = { 0, 0 };
    memcpy(s, x, sizeof s);
    cells[cell].gates_of(s, x + 4, now);
    cells[cell].out(s, x + 4, now);
    return weight[0] * now[0] + (cells[cell].states > 1 ? weight[1] * now[1] : 0);
}

Test(cells, backward_matches_central_differences)
{
    for (int cell = 0; cell < WEFT__CELLS; cell++)
        for (int round = 0; round < 200; round++) {
            double x[6], d[2], weight[2], s[4], now[2] = { 0, 0 };
            dice_seed((uint64_t)(round * 100 + cell));
            for (int i = 0; i < 6; i++)
                x[i] = (double)dice_real(-2, 2);
            d[0] = weight[0] = (double)dice_real(-1, 1),
            d[1] = weight[1] = cells[cell].states > 1 ? (double)dice_real(-1, 1) : 0;
            memcpy(s, x, sizeof s);
            cells[cell].gates_of(s, x + 4, now);
            cells[cell].out(s, x + 4, now);
            cells[cell].back(s, x + 4, now, d);
            double by[6] = { s[0], s[1], s[2], s[3], d[0], d[1] };
            for (int i = 0; i < 6; i++) {
                const double step = 1e-5;
                double up[6], down[6];
                memcpy(up, x, sizeof x), memcpy(down, x, sizeof x);
                up[i] += step, down[i] -= step;
                double want = (loss_of(cell, up, weight) - loss_of(cell, down, weight)) / (2 * step);
                bool there = i < cells[cell].slots || (i > 3 && i < 4 + cells[cell].states);
                if (there && fabs(x[i]) > 2 * step)            /* except near the corner of a rectifier */
                    cr_assert_float_eq(by[i], want, 1e-9,
                                       "%s, round %d: d / d number %d: %.12g, central differences %.12g",
                                       cells[cell].name, round, i, by[i], want);
            }
        }
}

Test(cells, read_only_the_last_state_when_flagged)
{
    for (int cell = 0; cell < WEFT__CELLS; cell++) {
        double s[4] = { .1, -.2, .3, .4 }, was[2] = { .5, .5 }, now[2] = { 0, 0 }, d[2] = { 1, 1 };
        was[1 - (cells[cell].states - 1)] = (double)NAN;
        cells[cell].gates_of(s, was, now);
        cells[cell].out(s, was, now);
        cells[cell].back(s, was, now, d);
        for (int k = 0; k < cells[cell].slots; k++)
            cr_assert(isfinite(s[k]), "%s: slot %d", cells[cell].name, k);
        cr_assert(isfinite(now[0]) && isfinite(d[0]) &&
                      (cells[cell].states == 1 || (isfinite(now[1]) && isfinite(d[1]))),
                  "%s", cells[cell].name);
    }
}

Test(cells, maps_agree_with_their_counts)
{
    for (int i = 0; i < WEFT__CELLS; i++) {
        const weft__cell cell = (weft__cell)i;
        const int gates = weft__gates(cell), slots = weft__slots(cell), alone = weft__slot_of_h_alone(cell);
        cr_assert(gates == cells[i].gates && slots == cells[i].slots &&
                  weft__states(cell) == cells[i].states);
        cr_assert(gates >= 1 && slots >= gates && slots <= 4 && cells[i].states >= 1 &&
                  cells[i].states <= 2 && cells[i].first <= slots);
        cr_assert(slots == gates || (slots == gates + 1 && alone >= 0), "%s: two slots belong to h only",
                  cells[i].name);
        for (int side = 0; side < 2; side++) {
            int seen = 0;
            for (int slot = 0; slot < slots; slot++) {
                int block = weft__block_of(cell, side, slot);
                cr_assert(block >= -1 && block < gates &&
                              (block < 0 || weft__slot_of(cell, side, block) == slot),
                          "%s, slot %d", cells[i].name, slot);
                seen += block < 0 ? 0 : 1 << block;
            }
            cr_assert_eq(seen, (1 << gates) - 1, "%s: a block has no slot", cells[i].name);
            for (int block = 0, n; block < gates; block += n) {
                n = weft__blocks_from(cell, side, block);
                for (int k = 0; k < n; k++)
                    cr_assert_eq(weft__slot_of(cell, side, block + k), weft__slot_of(cell, side, block) + k);
                cr_assert(n >= 1 && block + n <= gates &&
                          (n == 1 || weft__slot_of(cell, side, block) != alone));
            }
        }
        for (int slot = 0; slot < slots; slot++)
            cr_assert(weft__block_of_x(cell, slot) >= 0 || weft__block_of_h(cell, slot) >= 0,
                      "%s: no sum in slot %d", cells[i].name, slot);
        /* kernels that compute dx in one product rely on this */
        for (int slot = 0; slot < slots; slot++)
            cr_assert_eq(weft__block_of_x(cell, slot), slot < gates ? slot : -1,
                         "%s: x's blocks must be the first slots, in order", cells[i].name);
    }
}
