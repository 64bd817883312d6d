/* work.c - how many floating point operations a step really needs; GF/s and the share of the machine's peak
 * are of these.
 *
 * Counted are the products of matrices, a multiplication and an addition as two, over real tokens (no pads)
 * and, of attention, over real pairs of a query and a key that it may see:
 *
 *   linear     2 in out a row; backward as much for the weights, and as much for what goes in where that has
 *              a gradient
 *   recurrent  2 gates hidden (in + hidden) a token and direction; backward the same for the weights,
 *              2 gates hidden^2 for the state before, 2 gates hidden in for what goes in where that has a
 *              gradient
 *   attention  2 (dk + dv) a pair, summed over heads; backward twice that
 *
 * Not counted: gates' functions, softmax, norms, sums, optimisers, embeddings, and whatever is computed a
 * second time to save memory. */
#include "bench.h"

void add_linear(work *to, double rows, int64_t in, int64_t out, bool dx)
{
    double once = 2 * rows * (double)in * (double)out;
    to->forward += once;
    to->train += once * (dx ? 3 : 2);
}

void add_recurrent(work *to, double tokens, int gates, int64_t in, int64_t hidden, bool dx)
{
    add_linear(to, tokens, in, gates * hidden, dx);
    add_linear(to, tokens, hidden, gates * hidden, true);
}

void add_attention(work *to, double pairs, int64_t width_of_keys, int64_t width_of_values)
{
    double once = 2 * pairs * (double)(width_of_keys + width_of_values);
    to->forward += once;
    to->train += 3 * once;
}
