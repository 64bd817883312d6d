/* formula.c - computes weights, inputs and token ids from a formula, and counts the arithmetic of a step.
 *
 * bench/peers/torch_bench.py has the same formula. Equal loss and gradient norm of a training step then prove
 * that both programs did the same work. */
#include <stdlib.h>
#include <string.h>
#include "bench.h"

double formula(const char *name, int64_t i)
{
    uint64_t key = 0;
    for (; *name; name++)
        key = key * 31 + (unsigned char)*name;
    uint64_t x = ((uint64_t)i * 2654435761u + key % 65521 * 40503u) % (1u << 31);
    x = (1103515245 * x + 12345) % (1u << 31);
    return (double)(x >> 15) / 65536 - .5;
}

bool fill_formula(weft_tensor *kept, const char *name, double scale)
{
    int64_t    n = weft_numel(kept);
    weft_real *v = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; v && i < n; i++)
        v[i] = (weft_real)(scale * formula(name, i));
    if (v)
        weft_assign_values(kept, v, n);
    free(v);
    return v;
}

bool fill_padded(weft_tensor *kept, const char *name, double scale, const weft_lengths *l)
{
    int64_t    n = weft_numel(kept), from = 0, wide = l->n ? n / l->n : 0, width = weft_size(kept, -1);
    weft_real *v = calloc((size_t)n, sizeof *v);
    for (int64_t s = 0; v && s < l->n; s++)
        for (int64_t i = 0; i < l->len[s] * width; i++)
            v[s * wide + i] = (weft_real)(scale * formula(name, from++));
    if (v)
        weft_assign_values(kept, v, n);
    free(v);
    return v;
}

bool set_weights(weft_module *m, double scale)
{
    const char *path;
    bool ok = true;
    for (int i = 0; ok && i < weft_parameter_count(m); i++) {
        weft_tensor *p = weft_parameter_at(m, i, &path);
        ok = fill_formula(p, path, scale);
    }
    return ok;
}

int32_t *make_lengths(const char *kind, uint64_t seed, int64_t n, int32_t longest, int64_t *sum)
{
    int32_t *len = keep(n, sizeof *len), low = longest / 8 > 1 ? longest / 8 : 1;
    uint64_t x = seed;
    *sum = 0;
    for (int64_t i = 0; i < n; i++) {
        x = (1103515245 * x + 12345) % (1u << 31);
        len[i] = low + (int32_t)((x >> 8) % (uint64_t)(longest - low + 1));
        if (!strcmp(kind, "triangle"))
            len[i] = longest - (int32_t)(i % longest);
        else if (!strcmp(kind, "equal"))
            len[i] = longest;
        *sum += len[i];
    }
    return len;
}

/* ---- floating point operations that a step needs; GF/s and the share of the peak are of these ----
 *
 * Counts matrix products (a multiplication and an addition are two operations) over real tokens, without
 * padding, and for attention over pairs of a query and a visible key:
 *
 *   linear     2 in out per row; backward the same for the weights, and for an input with a gradient
 *   recurrent  2 gates hidden (in + hidden) per token and direction; backward the same for the weights,
 *              2 gates hidden^2 for the state before, 2 gates hidden in for the input if it has a gradient
 *   attention  2 (dk + dv) per pair, summed over heads; backward twice that
 *
 * Not counted: activation functions, softmax, norms, sums, optimisers, embeddings, and recomputation. */
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
