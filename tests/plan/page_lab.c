/* page_lab.c - writes the page of a lab whose measurements are all formulas, for test_page.sh. The command
 * loads it as a planner, and it calls functions of the command. */
#include <math.h>
#include "tools/lab/lab.h"

enum { POINTS = 8, SEEDS = 3, PLANS = 2 };
static lab_point point[PLANS][SEEDS][POINTS];
static lab_curve curve[PLANS][SEEDS];

static void learn(lab_plan *l, int k)
{
    for (int s = 0; s < SEEDS; s++) {
        for (int i = 0; i < POINTS; i++)
            point[k][s][i] = (lab_point){ .tokens = 500. * i,
                                          .updates = (10. - k) * i,
                                          .seconds = (.5 + .2 * k) * i,
                                          .loss = 1 + .1 * k + 2. / (1 + i) + .01 * s * (i % 3) };
        curve[k][s] = (lab_curve){ POINTS, point[k][s] };
    }
    l->curve = curve[k], l->curves = SEEDS;
    l->planner_ms = 1.5 + k, l->predicted_ms = 90 + 8 * k, l->median_ms = 100 + 40 * k;
    l->p10_ms = l->median_ms * .9, l->p90_ms = l->median_ms * 1.2;
    l->bias = k ? .01 * k : 0, l->noise = 3.5 - k;
}

static bool write_lab(const int32_t *len, int64_t n)
{
    static const char *const texts[PLANS] = { "random:count=4", "best_fit:capacity=80,rows=2" };
    static lab_exact exact[] = { { "padded, packed", 123456, 0 }, { "packed, rows", 123456, 7 } };
    static lab_contamination contamination[] = { { "packed", 12, 98765, 0, 0 },
                                                       { "a <broken> one", 12, 98765, 3, 1 } };
    static lab_adversary adversary[] = { { "all equal", "first_fit", 10, 10, 1, 1.7 },
                                               { "6, 10, 16, 34 of 101", "first_fit", 20, 10, 2, 1.7 },
                                               { "one giant", "streams", 5, 5, 1, 0 } };
    static lab_cost cost[] = { { "packed 8 x 100", 1.1, 1, false },
                                     { "rows 64 x 64", 90, 120, true },
                                     { "padded 1 x 4", .05, .06, true },
                                     { "not run", 3, NAN, true } };
    planned t[PLANS];
    lab_plan plan[PLANS];
    bool good = true;
    for (int k = 0; k < PLANS && good; k++) {
        t[k] = (planned){ .text = texts[k] };
        good = make_planned(t + k, len, n) && lab_begin_plan(plan + k, t + k, len, n, 3);
        learn(plan + k, k);
    }
    const lab measured = { "a corpus & its \"name\" <b>\xC3\xA9\xFF\x01", n, len, plan, PLANS,
                           "weft lab 'it''s'", "reference, 1 thread", "2026-11-24",
                           exact, contamination, adversary, cost, 2, 2, 3, 4, NULL, 1.85, NULL, NULL,
                           "CPU time was 93 % of the wall time" };
    json_t *record = json_pack("{s:{s:s},s:{s:s,s:i,s:i,s:i,s:i,s:i,s:s},s:{s:i,s:f,s:i,s:f,s:i,s:i,s:i,"
                               "s:i},s:{s:s,s:s}}", "weft", "version", "0", "corpus", "name", "a | corpus_*",
                               "sequences", 200, "tokens", 4000, "held_out_sequences", 10, "held_out_tokens",
                               123, "classes", 64, "sha256", "00ff", "options", "hidden", 64, "dropout", .1,
                               "update", 1024, "lr", .005, "epochs", 2, "seeds", 3, "rounds", 5, "threads", 1,
                               "machine", "cpu", "a <CPU>", "instructions", "ref");
    good = good && write_page("measured.html", &measured) &&
           write_paper("measured.md", &measured, record, "a record.json");
    json_decref(record);
    return good;
}

static weft_status page(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    (void)o, (void)p;
    return weft_plan_refuse(WEFT_EARG, "%s", write_lab(len, n) ? "the page is written" : weft_plan_message());
}
const weft_planner page_planner = { .name = "page", .options = "", .plan = page };

/* A plan with pieces out of order, gaps between them, tokens left out, and one of two possible states
 * carried. */
static weft_status woven(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    static const weft_segment s[] = { { 0, 5, 0, 7, 1, -1 }, { 1, 0, 0, 3, 0, -1 }, { 4, 4, 0, 4, 0, -1 },
                                      { 2, 0, 0, 3, 2, -1 }, { 4, 0, 4, 4, 1, 2 },  { 2, 0, 3, 2, 0, -1 },
                                      { 3, 3, 0, 2, 0, -1 }, { 5, 5, 0, 1, 1, -1 }, { 6, 0, 0, 4, 0, -1 } };
    static const weft_plan_batch b[] = { { 0, 4, 3, 12 }, { 4, 4, 2, 9 }, { 8, 1, 1, 10 } };
    weft_status st = n == 8 ? WEFT_OK : weft_plan_refuse(WEFT_EARG, "eight sequences are expected");
    for (int k = 0; k < 3; k++) {
        for (int64_t i = b[k].first; i < b[k].first + b[k].n && st == WEFT_OK; i++)
            st = weft_plan_add(p, s[i]);
        st = st == WEFT_OK ? weft_plan_end_batch(p, b[k].rows, b[k].width) : st;
    }
    p->in_rows = true, p->dropped = len[7];
    (void)o;
    return st;
}
const weft_planner woven_planner = { .name = "woven", .options = "", .plan = woven };
