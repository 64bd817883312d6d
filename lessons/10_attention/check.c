/* Lesson 10: compares attention with weft's softmax, and decode with a reference. */
#include "common/lesson.h"
#include "common/mistakes.h"
#include "given.h"

/* ---- attention ---- */
enum { LISTS = 12, TOKENS = 400, WIDEST = 40, HELD = 7 };
static int DM = 3; /* width of memory */
typedef struct {
    int n, len[LISTS], tokens;
    double score[TOKENS], memory[TOKENS * WIDEST], weight[TOKENS],
        context[LISTS * WIDEST];
} batch;

/* Fills a batch with random numbers, and with weft's weights and contexts. */
static void fill(batch *b, int n, const int *len)
{
    weft *w = lesson_open(1);
    int32_t lens[LISTS];
    *b = (batch){ .n = n };
    for (int s = 0; s < n; s++)
        b->tokens += b->len[s] = lens[s] = len[s];
    dice_fill(b->score, b->tokens), dice_fill(b->memory, b->tokens * DM);
    const int spread = DM % 2 ? 3 : 12; /* some weights are tiny */
    for (int k = 0; k < b->tokens; k++)
        b->score[k] *= spread;
    weft_lengths lengths = { .n = n, .len = lens };
    weft_tensor *weight = weft_softmax(weft_ragged(w, b->score, 1, &lengths), 0, NULL);
    weft_tensor *seen = weft_pool(
        weft_mul(weight, weft_ragged(w, b->memory, DM, &lengths)), WEFT_POOL_SUM);
    weft_read_sequences(weight, b->weight, (size_t)b->tokens * sizeof *b->weight);
    weft_read(seen, b->context, (size_t)(n * DM) * sizeof *b->context);
    lesson_close(w);
}

/* Returns the sum of exp over all sequences, at one place or at all: -1. */
static double exp_sum(const batch *b, int place)
{
    double sum = 0;
    for (int s = 0, k = 0; s < b->n; s++)
        for (int t = 0; t < b->len[s]; t++, k++)
            sum += place < 0 || t == place ? exp(b->score[k]) : 0;
    return sum;
}

static double weight_with(const batch *b, int way, int s, int t, int first)
{
    const double *of = b->score + first, score = of[t];
    double sum = 0, most = -INFINITY, exps = 0, turned = 0, twos = 0, begun = 0;
    for (int i = 0; i < b->len[s]; i++)
        sum += of[i], most = fmax(most, of[i]);
    for (int i = 0; i < b->len[s]; i++)
        exps += exp(of[i]), turned += exp(-of[i]), twos += exp2(of[i]);
    for (int i = 0; i < b->len[s]; i++)
        begun += exp(b->score[i]);
    switch (way) {
    case EXP_MINUS: return exp(-score) / turned;
    case EXP_OF_2: return exp2(score) / twos;
    case DIVIDED_TWICE: return exp(score - most) / pow(exps / exp(most), 2);
    case FIRST_SCORES: return exp(b->score[t]) / begun;
    case NO_EXP: return score / sum;
    case NO_DIVISION: return exp(score);
    case NO_DIVISION_BY_MOST: return exp(score - most);
    case OVER_ALL: return exp(score) / exp_sum(b, -1);
    case OVER_LISTS: return exp(score) / exp_sum(b, t);
    case MEAN: return 1. / b->len[s];
    default: return score == most;
    }
}

static void hint_of_weights(const batch *b, const double *got)
{
    double wrong[TOKENS];
    for (int way = NO_EXP; way <= FIRST_SCORES; way++) {
        for (int s = 0, k = 0; s < b->n; k += b->len[s++])
            for (int t = 0; t < b->len[s]; t++)
                wrong[k + t] = weight_with(b, way, s, t, k);
        if (near(got, wrong, b->tokens, 1e-10))
            hint("%s", hints[way]);
    }
    double first = 0;
    for (int t = 0; t < b->len[0]; t++)
        first += got[t];
    if (near(got, b->weight, b->tokens, 1e-5) && fabs(first - 1) > 1e-13)
        hint("the weights are nearly right, but those of sequence 1 add up to %.17g: "
             "do not add a constant to the divisor, and use exp and double, not expf "
             "and float",
             first);
    hint_of_float("the weights are", got, b->weight, b->tokens);
    for (int s = 0, k = 0; s < b->n; k += b->len[s++]) {
        double sum = 0;
        for (int t = 0; t < b->len[s]; t++)
            sum += got[k + t];
        if (!near(got + k, b->weight + k, b->len[s], 1e-10))
            hint("sequence %d has wrong weights, with the sum %s; the first is %s, not "
                 "%s",
                 s + 1, digits_unlike(sum, 1), digits_unlike(got[k], b->weight[k]),
                 digits_unlike(b->weight[k], got[k]));
    }
}

/* Computes number j of a context, for a sequence whose first token is `first`. */
static double context_with(const batch *b, int way, int s, int j, int first)
{
    double sum = 0;
    for (int t = 0; t < b->len[s]; t++) {
        double weight = b->weight[first + t];
        int row = way == FIRST_ROWS ? t : first + t;
        int at = way == MEMORY_TURNED ? first * DM + j * b->len[s] + t : row * DM + j;
        sum += (way == ROWS_ONLY ? 1 : weight) * b->memory[at];
    }
    return way == CONTEXT_MEAN ? sum / b->len[s] : sum;
}

static void hint_of_known_contexts(const batch *b, int s, const double *got, int first)
{
    double wrong[WIDEST];
    for (int way = FIRST_ROWS; way <= ROWS_ONLY; way++) {
        for (int j = 0; j < DM; j++)
            wrong[j] = context_with(b, way, s, j, first);
        if (near(got, wrong, DM, 1e-10))
            hint("%s", hints[way]);
    }
}

static void hint_of_contexts(const batch *b, const double *context)
{
    for (int s = 0, first = 0; s < b->n; first += b->len[s++]) {
        const double *got = context + s * DM, *want = b->context + s * DM;
        if (near(got, want, DM, 1e-10))
            continue;
        double held[WIDEST];
        for (int j = 0; j < DM; j++)
            held[j] = want[j] + HELD;
        if (near(got, held, DM, 1e-10))
            hint("the context of sequence %d is added to old values: begin with zeros",
                 s + 1);
        if (!b->len[s])
            hint("sequence %d has no tokens: its context must be set to zeros", s + 1);
        hint_of_known_contexts(b, s, got, first);
        int j = first_off(got, want, DM, 1e-10);
        hint("the weights are right, but number %d of the context of sequence %d is "
             "%s, not %s: add weight[t] times row t of its own memory, which begins at "
             "row %d",
             j, s + 1, BOTH(got[j], want[j]), first);
    }
}

/* Adds `by` and s times `each` to the scores of sequence s. The weights must stay the
 * same. */
static void check_moved(const batch *b, double by, double each)
{
    double score[TOKENS], weight[TOKENS], context[LISTS * WIDEST];
    for (int s = 0, k = 0; s < b->n; s++)
        for (int t = 0; t < b->len[s]; t++, k++)
            score[k] = b->score[k] + by + s * each;
    attend(b->n, b->len, score, DM, b->memory, weight, context);
    int bad = first_off(weight, b->weight, b->tokens, 1e-10);
    if (bad == b->tokens)
        return;
    const char *what = isfinite(weight[bad]) ? digits(weight[bad]) : "not finite";
    if (each)
        hint("with 800 added to the scores of sequence 1, and subtracted from those of "
             "2, a weight is %s: subtract the largest score of each sequence, not that "
             "of all sequences",
             what);
    if (by < 0)
        hint("with %g subtracted from all scores, a weight is %s: exp(%g) is 0. "
             "Subtract the sequence's largest score; the search for the largest must "
             "not begin at 0 or another constant",
             -by, what, by);
    hint("with 800 added to all scores, a weight is %s: exp(800) is too large for a "
         "double. Subtract the sequence's largest score before exp",
         what);
}

/* Checks scores that are far apart: only the largest has a weight. */
static void check_far_apart(void)
{
    static const double score[] = { 0, 800, -800, -800, -1600, 2, 0, -799, 1 };
    static const int len[] = { 3, 2, 4 };
    static const double want[] = {
        0, 1, 0, 1, 0, 0.665240955774821763, 0.0900305731703805, 0, 0.244728471054797643
    };
    double memory[9 * WIDEST], weight[9], context[3 * WIDEST];
    dice_fill(memory, 9 * WIDEST);
    attend(3, len, score, DM, memory, weight, context);
    int k = first_off(weight, want, 9, 1e-10);
    if (k < 9)
        hint("with scores 0, 800, -800, and -800, -1600 in the next sequence, the "
             "weight of %s is %s, not %s: subtract the sequence's largest score, not "
             "its first one, its mean or a constant",
             digits(score[k]), BOTH(weight[k], want[k]));
}

static void check_attend(const int *len, int n, int width)
{
    DM = width;
    static batch b;
    double weight[TOKENS], context[LISTS * WIDEST];
    fill(&b, n, len);
    old_values(weight, TOKENS, DM % 2), old_values(context, LISTS * WIDEST, DM % 2);
    attend(b.n, b.len, b.score, DM, b.memory, weight, context);
    if (b.tokens && all_zero(weight, b.tokens))
        hint("attend leaves the weights at zero: write the softmax of each sequence's "
             "scores");
    if (!near(weight, b.weight, b.tokens, 1e-10))
        hint_of_weights(&b, weight);
    hint_of_contexts(&b, context);
    check_moved(&b, 800, 0), check_moved(&b, -800, 0), check_moved(&b, -1e5, 0),
        check_moved(&b, 800, -1600);
}

/* ---- a decoder whose scores depend on all tokens that it has read ---- */
enum { MOST_KINDS = 40, LIMIT = 60, CASES = 160, BEFORE_GOLD = -1000 };
typedef struct {
    decoder d;
    unsigned seed, told;
    int kinds, steps, coins, tokens[LIMIT + 2];
    double scores[MOST_KINDS];
} known;

static unsigned mixed(unsigned x)
{
    x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ x >> 16;
}
static const double *known_step(decoder *d, int token)
{
    known *k = d->given;
    if (token == BEFORE_GOLD)
        hint("step reads gold[-1]: step k + 1 must read gold[k], the token of place k");
    if (token < 0)
        hint("step reads token %d: if all scores are below 0, begin the search for the "
             "largest with the first score, not with 0",
             token);
    if (token >= k->kinds)
        hint("step reads token %d, but there are %d tokens", token, k->kinds);
    if (k->steps > LIMIT)
        hint("decode runs more than %d steps with a limit of %d tokens", k->steps,
             LIMIT);
    k->tokens[k->steps++] = token;
    k->told = mixed(k->told * 31 + (unsigned)token + 1);
    for (int i = 0; i < k->kinds; i++)
        k->scores[i] =
            .1 * (mixed(k->told + 977 * (unsigned)i) % 16) - (i == BEGIN ? 2.4 : 2);
    return k->scores;
}
/* Returns a multiple of 1 / 20, so that a coin sometimes equals share. */
static double known_coin(decoder *d)
{
    known *k = d->given;
    return (double)(mixed(k->seed + 7919 * (unsigned)++k->coins) % 20) / 20;
}
static known known_new(unsigned seed, int kinds)
{
    return (known){ .d = { kinds, known_step, known_coin, NULL },
                    .kinds = kinds,
                    .seed = seed,
                    .told = mixed(seed) };
}

static int own_token(const double *score, int kinds, int way)
{
    int best = 0; /* all scores are below 0 */
    for (int i = 1; i < kinds && way != LARGEST_FROM_0; i++)
        if (way == SMALLEST       ? score[i] < score[best] :
            way == LAST_OF_EQUALS ? score[i] >= score[best] :
            way == FLOAT_SCORE    ? score[i] > (float)score[best] :
                                    score[i] > score[best])
            best = i;
    return best;
}

/* Returns whether the step after place n reads gold. first: the coin of ONE_COIN. */
static bool gold_is_told(int way, known *k, double share, int n, double first)
{
    if (way == ALWAYS_GOLD || way == ALWAYS_OWN)
        return way == ALWAYS_GOLD;
    if (way == NO_COIN || way == NO_COIN_FROM_HALF)
        return way == NO_COIN ? share > .5 : share >= .5;
    if (way == GOLD_BEHIND_NO_COIN && n == 0)
        return false;
    if (way == TWO_COINS)
        return known_coin(&k->d) < share && known_coin(&k->d) < share;
    double toss = way == ONE_COIN ? first : known_coin(&k->d);
    return way == COIN_TURNED ? toss >= share :
           way == COIN_ABOVE  ? toss > share :
           way == COIN_EQUAL  ? toss <= share :
           way == PERCENT     ? (int)(100 * toss) < (int)(100 * share) :
                                toss < share;
}

/* Returns the token of gold that the step after place n reads. */
static int of_gold(int way, const int *gold, int n, int limit, int own)
{
    switch (way) {
    case GOLD_AHEAD: return gold[n + 1 < limit ? n + 1 : n];
    case GOLD_NEXT: return n + 1 < limit ? gold[n + 1] : own;
    case GOLD_BEHIND:
    case GOLD_BEHIND_NO_COIN: return n ? gold[n - 1] : own;
    case GOLD_BEHIND_BEGIN: return n ? gold[n - 1] : BEGIN;
    default: return gold[n];
    }
}

static int decode_with(int way, known *k, const int *gold, double share, int limit,
                       int *out)
{
    int told = BEGIN;
    double first = way == ONE_COIN && gold ? known_coin(&k->d) : 0;
    bool alone = false;
    if (way == GOLD_FIRST && gold)
        told = gold[0];
    for (int n = 0; n < limit; n++) {
        if (way == GOLD_AHEAD && gold && n == 0 && known_coin(&k->d) < share)
            told = gold[0];
        int own = own_token(k->d.step(&k->d, told), k->kinds, way);
        if (way == BEGIN_ENDS && own == BEGIN)
            return n;
        if (own == END && way != END_MISSED && way != BEGIN_ENDS) {
            out[n] = END;
            return n + (way == END_WRITTEN);
        }
        bool ends = gold && gold[n] == END;
        if (ends && way == GOLD_ENDS)
            return n;
        bool right = gold && !(alone && way == STAYS_ALONE) &&
                     gold_is_told(way, k, share, n, first);
        alone |= !right;
        told = right ? of_gold(way, gold, n, limit, own) : own;
        out[n] = way == GOLD_WRITTEN ? told : own;
        told = way == ALWAYS_BEGIN ? BEGIN : told;
        if (ends && (way == GOLD_ENDS_AFTER || (way == GOLD_ENDS_TOLD && right)))
            return n + 1;
    }
    return limit;
}

typedef struct {
    int before, gold[LIMIT], limit; /* before: the value of gold[-1] */
    bool has;
    int kinds;
    double share;
    unsigned seed;
} question;
typedef struct {
    int n, out[LIMIT + 2], coins;
} reply;

static question asked(int i)
{
    static const double shares[] = { 1, 0, .5, .3001, .8 };
    question q = { .before = BEFORE_GOLD,
                   .limit = i % 7 == 6 ? 0 :
                            i % 7 == 5 ? 1 + i % 4 :
                            i % 4 == 3 ? LIMIT :
                                         9,
                   .has = i >= CASES / 4,
                   .kinds = i % 4 == 3 ? MOST_KINDS :
                            i % 3      ? 7 :
                                         5,
                   .share = shares[i % 5],
                   .seed = mixed(100 + (unsigned)i) };
    for (int k = 0; k < LIMIT; k++)
        q.gold[k] = DIGIT0 + (int)(mixed(q.seed + 13 * (unsigned)k) %
                                   (unsigned)(q.kinds - DIGIT0));
    if (i % 2 && i % 7 != 6) /* in about half of the cases gold has END */
        q.gold[i / 2 % q.limit] = END;
    return q;
}

/* Decodes with a known way; below 0: with the student's decode. */
static reply answer_of(const question *q, int way)
{
    known k = known_new(q->seed, q->kinds);
    reply a = { 0 };
    for (int i = 0; i < LIMIT + 2; i++)
        a.out[i] = -7;
    k.d.given = &k;
    const int *gold = q->has ? q->gold : NULL;
    a.n = way < 0 ? decode(&k.d, gold, q->share, q->limit, a.out) :
                    decode_with(way, &k, gold, q->share, q->limit, a.out);
    if (way < 0)
        share(&k.coins, sizeof k.coins), share(&k.steps, sizeof k.steps),
            share(k.tokens, sizeof k.tokens);
    a.coins = k.coins;
    if (way < 0 && !gold && k.steps && k.tokens[0] != BEGIN)
        hint("the first step reads token %d; expected BEGIN, which is %d", k.tokens[0],
             BEGIN);
    return a;
}

static bool same_answer(const reply *a, const reply *b)
{
    return a->n == b->n && same_ints(a->out, b->out, a->n);
}

/* Checks the coins and the unused part of out after a right answer. */
static void check_rest(const question *q, const reply *got)
{
    for (int k = got->n; k < q->limit; k++)
        if (got->out[k] != -7)
            hint("out[%d] is %d, though decode returns %d tokens: do not write END or "
                 "anything after it",
                 k, got->out[k], got->n);
    if (!q->has && got->coins)
        hint("a coin is tossed although gold is NULL: test gold first, then toss the "
             "coin");
    int most = got->n, least = got->n == q->limit && most ? most - 1 : most;
    if (q->has && (got->coins < least || got->coins > most))
        hint("%d coins are tossed for %d tokens with a share of %s: toss one after "
             "each written token, before the next step, whatever the share",
             got->coins, got->n, digits(q->share));
}

static void check_decode(void)
{
    int like[MISTAKES] = { 0 }, bad = -1;
    reply got, want = { 0 };
    for (int i = 0; i < CASES; i++) {
        question q = asked(i);
        got = answer_of(&q, -1);
        if (got.n < 0 || got.n > q.limit)
            hint("decode returns %d tokens, but the limit is %d", got.n, q.limit);
        for (int way = RIGHT; way < MISTAKES; way = way ? way + 1 : ALWAYS_GOLD) {
            want = answer_of(&q, way);
            like[way] += same_answer(&got, &want);
            bad = way == RIGHT && bad < 0 && !same_answer(&got, &want) ? i : bad;
        }
    }
    for (int i = 0; i < CASES && bad < 0; i++) {
        question q = asked(i);
        got = answer_of(&q, -1);
        check_rest(&q, &got);
    }
    if (bad < 0)
        return;
    for (int way = ALWAYS_GOLD; way < MISTAKES; way++)
        if (like[way] == CASES)
            hint("%s", hints[way]);
    question q = asked(bad);
    got = answer_of(&q, -1), want = answer_of(&q, RIGHT);
    if (!got.n && !q.has)
        hint("decode writes nothing: call step for the scores, and write the likeliest "
             "token to out, until it is END");
    hint("%s gold and with a share of %s, decode writes %d tokens, the first %d, not "
         "%d, the first %d",
         q.has ? "with" : "without", digits(q.share), got.n, got.n ? got.out[0] : -1,
         want.n, want.n ? want.out[0] : -1);
}

void check(void)
{
    dice_seed(100);
    check_attend((int[]){ 4, 2, 5 }, 3, 3);
    check_attend((int[]){ 3, 0, 1, 8, 2 }, 5, 5);
    check_attend((int[]){ 6 }, 1, 1);
    check_attend((int[]){ 1, 100, 0, 2, 40, 1, 70, 0, 3, 90, 5, 8 }, LISTS, WIDEST);
    check_attend((int[]){ 0, 0 }, 2, 2);
    check_far_apart();
    check_decode();
}
