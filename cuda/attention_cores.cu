/* attention_cores.cu - ragged attention on tensor cores. EXACT uses three products of halves, as exact as
 * fp32. Otherwise (WEFT_TF32 and WEFT_BF16) it uses TF32, the more exact of the two formats. The method is
 * that of attention.cu, with 64 queries by 32 keys for four warps. */
#ifndef WEFT_DOUBLE
#include "cuda/attention_cores.h"

#define CORED __launch_bounds__(CORES, 3)

/* keys per step; a warp's result fragments across them */
enum { KEYS = 8 * FOLDED, ACROSS = FOLDED };
/* shared memory of a block */
typedef struct __align__(16) smem {
    line q[TILE], k[KEYS], v[KEYS];
    uint64_t dropped[TILE];                      /* marks of 64 keys */
    unsigned nonfinite;                          /* see mark_if */
} smem;

/* Computes scores of the warp's 16 queries with the keys from `key` on. loaded: the queries are already in
 * shared memory. Also loads the values, and sets the mark if one of them is not finite. */
template <bool EXACT>
__device__ static inline void scores_of(smem &m, const weft__attention &a, const tile &t, const lane &me,
                                        int64_t key, const rows &values, unsigned mark, bool &loaded,
                                        float (&score)[ACROSS][4])
{
    UNROLLED for (int j = 0; j < ACROSS; j++)
        UNROLLED for (int i = 0; i < 4; i++)
            score[j][i] = 0;
    const rows q = from(queries_of(a, t), t.first), k = from(keys_of(a, t), key);
    ROLLED for (int64_t column = 0; column == 0 || column < a.dk; column += TILE) {
        __syncthreads();
        /* one loop, so that its code exists once */
        ROLLED for (int i = loaded; i < (column == 0 ? 3 : 2); i++) {
            const rows x = i == 2 ? values : columns(i ? k : q, column);
            const bool nonfinite = load_tile<EXACT>(i == 0 ? m.q : i == 1 ? m.k : m.v,
                                                    i ? (int)KEYS : (int)TILE, x);
            mark_if(&m.nonfinite, mark, nonfinite && i == 2);
        }
        __syncthreads();
        add_dots<EXACT>(m.q + 16 * me.warp, m.k, clamped(a.dk - column, TILE), me, score);
    }
    loaded = a.dk <= TILE;
}
/* Applies dropout to a thread's weights. Marks are drawn for 64 keys, two steps. */
__device__ static inline void drop(smem &m, const weft__attention &a, const tile &t, const lane &me,
                                   int64_t key, float (&w)[ACROSS][4])
{
    if (key % 64 == 0)
        draw<TILE, CORES>(m.dropped, a, t, t.first, key);
    UNROLLED for (int half = 0; half < 2; half++) {
        const int row = 16 * me.warp + me.group + 8 * half;
        const uint64_t drawn = t.first + row < t.queries ? m.dropped[row] : 0;
        const uint32_t marks = (uint32_t)(drawn >> (16 * me.part + key % 64 / 8));
        UNROLLED for (int j = 0; j < 2 * ACROSS; j++) {
            float &x = w[j / 2][2 * half + j % 2];
            x = marks >> (8 * (j % 2) + j / 2) & 1 ? 0 : x * a.kept;
        }
    }
}
/* reductions over the four threads of one row */
__device__ static inline float row_max(float x)
{
    x = larger(__shfl_xor_sync(~0u, x, 2), x);
    return larger(__shfl_xor_sync(~0u, x, 1), x);
}
__device__ static inline float row_sum(float x)
{
    x += __shfl_xor_sync(~0u, x, 2);
    return x + __shfl_xor_sync(~0u, x, 1);
}
/* As in attention.cu: turns the scores of one of the thread's queries into exp(score - max). Returns the
 * factor for the sums so far. */
__device__ static inline float weigh(running &r, float (&score)[ACROSS][4], int half, const lane &me,
                                     int64_t seen)
{
    const float nothing = -(float)INFINITY;
    float largest = r.largest, sum = 0;
    UNROLLED for (int j = 0; j < ACROSS; j++)
        UNROLLED for (int e = 0; e < 2; e++)
            largest = 8 * j + 2 * me.part + e < seen ? larger(score[j][2 * half + e], largest) : largest;
    largest = row_max(largest);
    const float from = largest == nothing ? 0 : largest, old = expf(r.largest - from);
    UNROLLED for (int j = 0; j < ACROSS; j++)
        UNROLLED for (int e = 0; e < 2; e++) {
            float &x = score[j][2 * half + e];
            x = 8 * j + 2 * me.part + e < seen ? expf(x - from) : 0;
            sum += x;
        }
    r.largest = largest;
    r.sum = r.sum * old + row_sum(sum);
    return old;
}
/* Computes sum += w v. */
template <bool EXACT>
__device__ static inline void add_values(smem &m, const lane &me, const rows &v, bool nonfinite, bool &loaded,
                                         float (&w)[ACROSS][4], float (&sum)[WIDE][4])
{
    UNROLLED for (int j = 0; j < ACROSS; j++)
        UNROLLED for (int i = 0; i < 4; i++)
            w[j][i] = stored<EXACT>(w[j][i]);
    if (nonfinite) {                             /* the weights overwrite the queries */
        clean(m.v, KEYS, v.width);
        UNROLLED for (int j = 0; j < ACROSS; j++)
            UNROLLED for (int i = 0; i < 4; i++)
                m.q[16 * me.warp + me.group + i / 2 * 8][8 * j + 2 * me.part + i % 2] = w[j][i];
        loaded = false;
        __syncthreads();
    }
    add_products<EXACT>(w, m.v, clamped(v.width, TILE), me, sum);
    if (nonfinite)
        add_nonfinite(v, clamped(v.n, KEYS), m.q[16 * me.warp + me.group], LINE, 1, 0, sum);
}
__device__ static inline void write_results(const weft__attention &a, const tile &t, const lane &me,
                                            const running (&r)[2], const float (&sum)[WIDE][4])
{
    for (int half = 0; half < 2; half++) {
        const int64_t query = t.first + 16 * me.warp + me.group + 8 * half, at = of_query(a, t, query),
                      seen = seen_by(a, t, query);
        if (query >= t.queries)
            continue;
        UNROLLED for (int j = 0; j < 2 * WIDE; j++) {
            const int64_t c = t.column + j / 2 * 8 + 2 * me.part + j % 2;
            if (c < a.dv)
                a.y[at * a.dv + c] = seen ? sum[j / 2][2 * half + j % 2] / r[half].sum : 0;
        }
        if (me.part == 0 && t.column == 0)
            a.lse[at] = log_of(r[half], seen);
    }
}
template <bool drops, bool EXACT>
static __global__ void CORED attend_cores(weft__attention a, int64_t pieces, int64_t tiles)
{
    SHARED(m, smem);
    const lane me = this_lane();
    unsigned mark = 0;
    if (threadIdx.x == 0)
        m.nonfinite = 0;
    __syncthreads();
    EACH_TILE(a, a.q_offset, a.heads, pieces, tiles, t) {
        float w[ACROSS][4], sum[WIDE][4] = {};
        running r[2] = { { -(float)INFINITY, 0 }, { -(float)INFINITY, 0 } };
        bool loaded = false;
        for (int64_t key = 0, keys = seen_by_tile(a, t); key < keys; key += KEYS) {
            const rows v = columns(from(values_of(a, t), key), t.column);
            scores_of<EXACT>(m, a, t, me, key, v, ++mark, loaded, w);
            UNROLLED for (int half = 0; half < 2; half++) {
                const int64_t query = t.first + 16 * me.warp + me.group + 8 * half;
                const float old = weigh(r[half], w, half, me, seen_by(a, t, query) - key);
                UNROLLED for (int j = 0; j < WIDE; j++) {
                    sum[j][2 * half] *= old;
                    sum[j][2 * half + 1] *= old;
                }
            }
            if (drops)
                drop(m, a, t, me, key, w);
            add_values<EXACT>(m, me, v, m.nonfinite == mark, loaded, w, sum);
        }
        write_results(a, t, me, r, sum);
    }
}
template <bool drops, bool EXACT>
static __global__ void CORED write_map_cores(weft__attention a, int64_t tiles)
{
    SHARED(m, smem);
    const lane me = this_lane();
    EACH_TILE(a, a.q_offset, a.heads, 1, tiles, t) {
        const rows none = {};
        bool loaded = false;
        for (int64_t key = 0; key < t.keys; key += KEYS) {
            float w[ACROSS][4];
            scores_of<EXACT>(m, a, t, me, key, none, 0, loaded, w);
            for (int half = 0; half < 2; half++) {
                const int64_t query = t.first + 16 * me.warp + me.group + 8 * half;
                const int64_t seen = seen_by(a, t, query) - key;
                const float lse = seen > 0 ? a.lse[of_query(a, t, query)] : 0;
                UNROLLED for (int j = 0; j < 2 * ACROSS; j++) {
                    float &x = w[j / 2][2 * half + j % 2];
                    x = j / 2 * 8 + 2 * me.part + j % 2 < seen ? expf(x - lse) : 0;
                }
            }
            if (drops)
                drop(m, a, t, me, key, w);
            for (int half = 0; half < 2; half++) {
                const int64_t query = t.first + 16 * me.warp + me.group + 8 * half;
                UNROLLED for (int j = 0; j < 2 * ACROSS; j++) {
                    const int64_t k = key + j / 2 * 8 + 2 * me.part + j % 2;
                    if (query < t.queries && k < t.keys)
                        a.map[(a.map_offset.device[t.q + query] + k) * a.heads + t.head] =
                            w[j / 2][2 * half + j % 2];
                }
            }
        }
    }
}
void attend_by_cores(weft__device *d, const weft__attention *a)
{
    const int64_t pieces = pieces_of(a->dv), tiles = slots(a->q_offset, a->sequences) * a->heads;
    LAUNCH(d, WHICH_CORES(d, attend_cores), grid_of(tiles * pieces), CORES, 0, *a, pieces, tiles * pieces);
    if (a->map)
        LAUNCH(d, WHICH_CORES(d, write_map_cores), grid_of(tiles), CORES, 0, *a, tiles);
}
#endif
