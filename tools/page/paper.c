/* paper.c - writes a short report in Markdown, with the page's numbers and its pictures as files. */
#include <stdlib.h>
#include <string.h>
#include "tools/page/page.h"

/* Writes a text and replaces each "{object.key}" by that value of the record. */
static void put_filled(page *p, const json_t *record, const char *text)
{
    char object[32], key[32], number[32];
    for (int n; *text; text += n) {
        n = 0;
        if (sscanf(text, "{%31[a-z].%31[a-z0-9_]}%n", object, key, &n) < 2 || !n) {
            n = 1 + (int)strcspn(text + 1, "{");
            put(p, "%.*s", n, text);
            continue;
        }
        const json_t *value = json_object_get(json_object_get(record, object), key);
        snprintf(number, sizeof number, "%g", json_number_value(value));
        if (json_is_integer(value))
            put_real(p, (double)json_integer_value(value), 0);
        else
            put_text(p, json_is_number(value) ? number : json_string_value(value));
    }
}

/* ---- the experiments with results ---- */
typedef struct {
    bool times, gradients, learning;
    int exact, tested, contaminating;
} summary;

static summary summarize(const lab *l)
{
    summary s = { .exact = l->exacts };
    for (int i = 0; i < l->plans; i++) {
        s.times |= !isnan(l->plan[i].median_ms);
        s.gradients |= !isnan(l->plan[i].bias);
        s.learning |= !isnan(last_loss(l->plan + i));
    }
    for (int i = 0; i < l->exacts; i++)
        s.exact -= l->exact[i].differ > 0;
    for (const lab_contamination *c = l->contamination; c < l->contamination + l->contaminations; c++)
        if (strncmp(c->name, "none:", 5)) { /* not the control */
            s.tested++;
            s.contaminating += c->differ || c->spread;
        }
    return s;
}

static void put_method(page *p, const json_t *record, const summary *s)
{
    put_filled(p, record,
               "## Method\n\nweft {weft.version} planned the {corpus.sequences} training sequences of "
               "{corpus.name}, with {corpus.tokens} tokens. The SHA-256 of the corpus is {corpus.sha256}. "
               "Repeated sequences were removed, every twentieth sequence was held out "
               "({corpus.held_out_sequences} with {corpus.held_out_tokens} tokens), and each got an end "
               "token.");
    if (s->times || s->gradients || s->learning)
        put_filled(p, record, " The model predicts the next of {corpus.classes} tokens. It has an "
                              "embedding, an LSTM of {options.hidden} units and a linear layer.");
    if (s->learning)
        put_filled(p, record, " For learning, AdamW made updates of {options.update} tokens with a rate "
                              "of {options.lr} and dropout of {options.dropout} (epochs: "
                              "{options.epochs}; first weights: {options.seeds}). All plans had the same "
                              "first weights and the same number of tokens in an update.");
    if (s->times)
        put_filled(p, record, " Times are of whole passes with updates, the plans in turn (rounds: "
                              "{options.rounds}).");
    put_filled(p, record, " The machine was {machine.cpu} (kernels: {machine.instructions}; threads: "
                          "{options.threads}).");
    if (p->lab->busy)
        put_between(p, " ", p->lab->busy, ".");
}

/* ---- results ---- */
static void fill_paper(const lab *l, int i, page_row *row)
{
    const lab_plan *p = l->plan + i;
    const weft_plan_figures *f = &p->made->figures;
    SET_ROW(row, NULL, CELL("batches", f->batches, 0, 0), CELL("cells", f->cells, -1, 0),
            CELL("fill", f->fill, 1, 3), CELL("steps", f->steps, -1, 0),
            CELL("measured ms", p->median_ms, -1, 1), CELL("10 %", p->p10_ms, 0, 1),
            CELL("90 %", p->p90_ms, 0, 1), CELL("predicted ms", p->predicted_ms, -1, 1),
            CELL("η²", f->eta2, -1, 3), CELL("disturbance", l->verdict->plan[i].by.sum, -1, 3),
            CELL("bias", p->bias, -1, 5), CELL("bits", last_loss(p) / log(2), -1, 3));
}

static void put_results(page *p, const summary *s)
{
    put(p, "\n\n## Results\n");
    put_table(p,
              "A pass over the corpus: its median time with the 10th and 90th percentile, and the "
              "predicted CPU time of only the recurrent layer. η²: the share of the lengths' variance "
              "between batches. Disturbance: of gradients, 0 if sequences are drawn at random. Bias: of "
              "the mean gradient of the batches. Bits: of a token of the sequences held out, after "
              "learning. Bold: the best of a column.",
              "planner", p->lab->plans, fill_paper, NULL);
    if (p->lab->exacts)
        put(p, "\nOutputs equal those of whole sequences to the bit in %d of %d layouts and plans.", s->exact,
            p->lab->exacts);
    for (int i = 0; i < p->lab->exacts; i++)
        if (p->lab->exact[i].differ)
            put_between(p, " They differ in ", p->lab->exact[i].name, ".");
    if (s->tested)
        put(p, "\nA change of one sequence changed others, or spread NaN to them, in %d of %d plans.",
            s->contaminating, s->tested);
    put(p, "\n\n");
    draw_lengths(p);
    if (s->times)
        draw_steps(p);
    if (s->learning)
        draw_learning(p, 0);
}

/* ---- limits ---- */
static void put_item(page *p, const char *begin, const char *text)
{
    put(p, "- ");
    put_between(p, begin, text, "\n");
}

static void put_cost_error(page *p)
{
    const lab *l = p->lab;
    SCOPED double *error = get_memory(l->costs, sizeof *error);
    int n = 0;
    for (int i = 0; i < l->costs; i++)
        if (l->cost[i].measured_ms > 0)
            error[n++] = 100 * fabs(l->cost[i].predicted_ms / l->cost[i].measured_ms - 1);
    if (n)
        put(p, "- The cost model was wrong by %.1f %% in the median of %d measured parts.\n",
            quantile(error, n, .5), n);
}

static void put_limits(page *p, const summary *s)
{
    const lab *l = p->lab;
    const char *const missing[] = { s->times ? NULL : "times", l->costs ? NULL : "the cost of a layer",
                                    s->gradients ? NULL : "gradients", s->learning ? NULL : "learning",
                                    l->exacts ? NULL : "exactness", s->tested ? NULL : "contamination" };
    put(p, "## Limits\n\n- One model and one machine. Differences of bits below those between first "
           "weights mean nothing.\n");
    if (l->verdict->chosen >= 0)
        put_item(p, "", l->verdict->sure);
    put_cost_error(p);
    for (int i = 0; i < l->plans; i++)
        if (l->plan[i].no_curve) {
            put_item(p, "A plan has no learning curve: ", l->plan[i].made->text);
            put_item(p, "The reason: ", l->plan[i].no_curve);
        }
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        if (missing[i])
            put_item(p, "Not measured: ", missing[i]);
    if (l->stopped)
        put_item(p, "Why experiments are missing: ", l->stopped);
}

static void put_end(page *p, const char *record_path)
{
    char *path = (char *)record_path, *again = path ? command_line("weft lab --repeat", 1, &path) : NULL;
    put(p, "\n## Repeat it\n\nThis command wrote the report:\n\n```sh\n%s\n```\n", p->lab->command);
    if (again)
        put(p, "\nThis one repeats the run and prints the numbers that differ from the record:\n\n"
               "```sh\n%s\n```\n", again);
    free(again);
    put(p, "\n## Sources\n\n");
    put_item(p, "weft ", weft_version());
    for (int i = 0; i < p->lab->plans; i++) {
        const planned *made = p->lab->plan[i].made;
        if (made->planner.source && strcmp(made->planner.source, "-")) {
            char name[80];
            snprintf(name, sizeof name, "%.40s: ", made->planner.name);
            put_item(p, name, made->planner.source);
        }
    }
}

bool write_paper(const char *path, const lab *l, const json_t *record, const char *record_path)
{
    lab judged = *l;
    VERDICT v;
    page p = { .lab = &judged, .paper = path };
    summary s = summarize(l);
    if (!judge_lab(l, &v))
        return false;
    judged.verdict = &v;
    weft__svg_open(&p.svg, path);
    put_between(&p, "# Plans for ", l->corpus, "\n\n");
    put(&p, "Which of %d plans takes the least time to train on this corpus, and how does it change "
            "gradients and learning?\n\n", l->plans);
    put_advice(&p);
    put_method(&p, record, &s);
    put_results(&p, &s);
    put_limits(&p, &s);
    put_end(&p, record_path);
    return (weft__svg_close(&p.svg, "") == WEFT_OK && !p.failed) || say_failure("%s", weft_file_message());
}
