/* fuzz_planners.c - fuzzes the text of a planner and its lengths: the result is a valid plan or a message.
 * Input: an unused byte, text up to the first newline, then one byte for each length, or four if its highest
 * bit is set. */
#include "weft_lab.h"
#include "fuzz.h"

enum { LENGTHS = 256, WORDS = 200 };

static int64_t lengths_of(const uint8_t *data, size_t size, int32_t *len)
{
    int64_t n = 0;
    for (size_t at = 0; at < size && n < LENGTHS; n++) {
        bool is_long = data[at] & 128 && at + 4 <= size;
        if (is_long)
            memcpy(len + n, data + at, 4);
        else
            len[n] = data[at] & 127;
        len[n] = is_long && len[n] > 0 ? len[n] % 100000 : len[n];
        at += is_long ? 4 : 1;
    }
    return n;
}

/* Counts the plan again: each token occurs once, or is counted as left out. */
static void count_tokens(const char *words, const weft_plan *p, const int32_t *len, int64_t n)
{
    int64_t tokens = 0, there = 0, batches = 0;
    for (int64_t b = 0; b < p->batches; b++) {
        SAME(p->batch[b].first == there, "%s: batch %lld does not follow", words, (long long)b);
        there += p->batch[b].n, batches++;
        for (int64_t i = p->batch[b].first; i < there; i++) {
            const weft_segment *s = p->segment + i;
            SAME(s->sequence >= 0 && s->sequence < n && s->offset >= 0 &&
                     s->length <= len[s->sequence] - s->offset && s->row < p->batch[b].rows &&
                     s->column + s->length <= p->batch[b].width,
                 "%s: segment %lld is outside its sequence", words, (long long)i);
            tokens += s->length;
        }
    }
    int64_t all = 0;
    for (int64_t i = 0; i < n; i++)
        all += len[i];
    SAME(there == p->segments && tokens + p->dropped == all, "%s: %lld tokens and %lld left out, of %lld",
         words, (long long)tokens, (long long)p->dropped, (long long)all);
}

static void measure(const char *words, const weft_plan *p, const int32_t *len, int64_t n, int64_t capacity)
{
    weft_plan_figures f;
    weft_token_weights weights;
    weft_plan_work work;
    double r;
    SAME(!weft_plan_measure(p, len, n, capacity, &f) && f.cells >= f.tokens - f.dropped, "%s: %s", words,
         weft_plan_message());
    SAME(!weft_plan_count_work(p, &work) && work.products <= work.padded_products, "%s: work", words);
    for (int by = WEFT_MEAN_OF_BATCH; by <= WEFT_MEAN_OF_SEQUENCES; by++)
        SAME(!weft_plan_weigh(p, (weft_plan_mean)by, &weights) && weights.cv >= 0, "%s: weights", words);
    SAME(!weft_plan_autocorrelation(p, &r) && fabs(r) < 1.001, "%s: %g", words, r);
}

/* Planners that solve integer programs take seconds for long rows, which would look like a hang. */
static bool is_large_program(const weft_planner *planner, const weft_plan_opts *o)
{
    static const char *const solvers[] = { "exact_fill", "column_generation", "lpfhp" };
    for (int i = 0; i < COUNT(solvers); i++)
        if (!strcmp(planner->name, solvers[i]))
            return o->capacity > 1000;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int32_t len[LENGTHS];
    char words[WORDS] = "";
    if (size)
        data++, size--;
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    size_t n_words = end ? (size_t)(end - data) : size;
    if (n_words >= WORDS || memchr(data, 0, n_words))
        return 0;
    memcpy(words, data, n_words);
    int64_t n = end ? lengths_of(end + 1, size - n_words - 1, len) : 0;
    const weft_planner *planner;
    weft_plan_opts o;
    weft_plan p = { 0 };
    void *memory = NULL;
    fuzz_message = weft_plan_message;
    fuzz_watch(size);
    weft_status s = weft_plan_parse(words, &planner, &o, &memory);
    if (s == WEFT_OK && is_large_program(planner, &o)) {
        free(memory);
        return 0;
    }
    if (s == WEFT_OK)
        s = weft_plan_make(planner, len, n, &o, &p);
    fuzz_watched(s);
    if (s == WEFT_OK) {
        count_tokens(words, &p, len, n);
        SAME(!weft_plan_check(&p, len, n, 0), "%s: %s", words, weft_plan_message());
        measure(words, &p, len, n, o.capacity);
    }
    weft_plan_free(&p);
    free(memory);
    return 0;
}
