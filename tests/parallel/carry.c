/* carry.c - a small training program with carried states, for tests of parallel/: carry SHARDS UPDATES [WORD
 * ..]. It trains a language model on generated sequences, by slots and windows. Rank 0 prints the losses.
 *
 * Words: slots=N; out=FILE saves at the end, every=K also each K updates, resume continues from FILE. Faults:
 * wanders, states change rows; one_state, shards share a state; whole, the plan is not split; other=R, rank R
 * begins another batch; unsplit=R, it passes plans of other shards. */
#include "weft_parallel.h"
#include "weft_plan.h"
#include "program.h"

enum { DATA = 41, LONGEST = 60, TOKENS = 23, UNITS = 16, SHARDS = 16 };

typedef struct {
    int rank, shards;
    weft *w;
    weft_module *m;
    weft_embedding *table;
    weft_rnn *rnn;
    weft_linear *head;
    weft_optim *adam;
    weft_loader *loader;
    weft_loader_state at;
    weft_parallel *p;
    weft_dataset data;
    weft_plan part[SHARDS];
    weft_carried *kept[SHARDS];
} run;

/* ---- data, model ---- */
static void make_data(run *r)
{
    static int32_t len[DATA], tokens[DATA * LONGEST];
    static int64_t offset[DATA + 1];
    for (int i = 0; i < DATA; i++) {
        len[i] = (i * 7 + i * i) % LONGEST;
        offset[i + 1] = offset[i] + len[i];
        for (int t = 0; t < len[i]; t++)
            tokens[offset[i] + t] = (i * 31 + t * t * 5 + t) % TOKENS;
    }
    r->data = (weft_dataset){ .n = DATA, .len = len, .offset = offset, .ints = tokens };
}

/* Slots like those of `streams`, but each state continues in the next row. */
static weft_status wander(const int32_t *len, int64_t n, const weft_plan_opts *o, weft_plan *p)
{
    weft_plan of;
    weft_status s = weft_plan_make(weft_planner_named("streams"), len, n, o, &of);
    p->in_rows = true;
    for (int64_t b = 0; b < of.batches && !s; b++) {
        for (int64_t i = of.batch[b].first; i < of.batch[b].first + of.batch[b].n && !s; i++) {
            weft_segment g = of.segment[i];
            g.row = (int32_t)((g.row + b) % of.batch[b].rows);
            s = weft_plan_add(p, g);
        }
        s = s ? s : weft_plan_end_batch(p, of.batch[b].rows, of.batch[b].width);
    }
    weft_plan_free(&of);
    return s;
}
static const weft_planner wanderer = { .name = "wander", .options = "slots window shuffle", .plan = wander };

static void make_model(run *r)
{
    r->w = weft_open(&(weft_opts){ .device = WEFT_CPU, .threads = 1, .seed = 7 });
    r->m = weft_module_new(r->w, "net");
    r->table = weft_embedding_new(r->m, "table", &(weft_embedding_opts){ .rows = TOKENS, .columns = UNITS });
    r->rnn = weft_lstm_new(r->m, "rnn",
                           &(weft_rnn_opts){ .input = UNITS, .hidden = UNITS, .layers = 2, .dropout = .2 });
    r->head = weft_linear_new(r->m, "head", &(weft_linear_opts){ .in = UNITS, .out = TOKENS });
    r->adam = weft_adamw_new(r->m, &(weft_adam_opts){ .lr = .01 });
    r->p = weft_parallel_new(r->m, &(weft_parallel_opts){ .shards = r->shards });
    r->loader = weft_plan_loader_new(
        r->w, "train", DATA, r->data.len, argument("wanders") ? &wanderer : weft_planner_named("streams"),
        &(weft_plan_opts){ .slots = number("slots", 11), .window = 6, .shuffle = true });
    weft_parallel_place place = weft_parallel_place_of(r->p);
    r->rank = place.rank, r->shards = place.shards;
}

/* Splits the plan of an epoch into shards. The first call also creates the carried states. */
static bool split(run *r, const weft_plan *plan)
{
    for (int s = 0; s < r->shards; s++)
        weft_plan_free(r->part + s);
    if (weft_plan_split(plan, r->shards, r->part) != WEFT_OK)
        return fprintf(stderr, "rank %d: %s\n", r->rank, weft_plan_message()), false;
    for (int s = 0; s < r->shards && !r->kept[s]; s++) {
        char name[16];
        snprintf(name, sizeof name, "kept%d", s);
        r->kept[s] = weft_carried_new(r->m, name, r->rnn, argument("whole") ? plan : &r->part[s]);
    }
    return true;
}

/* ---- files ---- */
static bool save(run *r)
{
    r->at = weft_loader_get_state(r->loader);
    weft_checkpoint_item item = { "loader", WEFT_I64, r->at.at, 4 };
    return fine(r->rank, weft_parallel_save(r->p, argument("out"), r->m, r->adam, &item, 1));
}

/* The file contains the states, so the plan and the carried states must exist before loading. */
static bool resume(run *r)
{
    const weft_plan *plan;
    weft_checkpoint_item item = { "loader", WEFT_I64, r->at.at, 4 };
    if (!fine(r->rank, weft_load(argument("out"), NULL, NULL, &item, 1)))
        return false;
    weft_loader_set_state(r->loader, r->at);
    int64_t next = weft_loader_next_batch(r->loader, &plan);
    weft_loader_set_state(r->loader, r->at);
    if (next < 0) /* end of an epoch */
        next = weft_loader_next_batch(r->loader, &plan), weft_loader_set_state(r->loader, r->at);
    if (next < 0 || !split(r, plan) ||
        !fine(r->rank, weft_parallel_load(r->p, argument("out"), r->m, r->adam, &item, 1)))
        return false;
    for (int s = 0; s < r->shards; s++)
        weft_carried_set_batch(r->kept[s], next - 1);
    return true;
}

/* ---- an update ---- */
static weft_loss loss_of(run *r, const weft_part *part, const weft_plan *plan, int64_t batch)
{
    int s = part->shard;
    weft_plan_step step = weft_plan_step_of(r->w, argument("whole") ? plan : &r->part[s], batch);
    weft_tensor *x = weft_embedding_run(r->table, weft_plan_tokens(&step, &r->data, -1, 0));
    weft_rnn_out out = weft_rnn_run_plan(r->rnn, x, &step, r->kept[argument("one_state") ? 0 : s]);
    weft_tensor *right = weft_plan_tokens(&step, &r->data, 0, 0);
    return weft_cross_entropy(weft_linear_run(r->head, out.y), right, NULL);
}

static void update(run *r, const weft_plan *plan, int64_t batch)
{
    weft_parallel_begin_plan(r->p, r->part + (number("unsplit", -1) == r->rank),
                             batch + (number("other", -1) == r->rank && weft_optim_steps(r->adam) == 2));
    for (weft_part part; weft_parallel_next(r->p, &part);)
        weft_parallel_add(r->p, loss_of(r, &part, plan, batch));
    weft_clip_grad_norm(r->m, 1, 0);
    weft_optim_step(r->adam);
    weft_clear(r->w);
    if (r->rank == 0 && weft_ok(r->w))
        printf("%lld %.17g\n", (long long)weft_optim_steps(r->adam), weft_parallel_mean(r->p));
}

static bool train(run *r, int updates)
{
    const weft_plan *plan;
    while (weft_ok(r->w) && weft_optim_steps(r->adam) < updates) {
        int64_t b = weft_loader_next_batch(r->loader, &plan);
        if (b < 0)
            continue;
        if ((b == 0 || !r->kept[0]) && !split(r, plan))
            return false;
        update(r, plan, b);
        if (saves_now(r->w, r->adam) && !save(r))
            return false;
    }
    return weft_ok(r->w) && (!argument("out") || save(r));
}

int main(int argc, char **argv)
{
    static run r;
    if (!arguments(argc, argv))
        return 2;
    r.shards = atoi(argv[1]);
    make_data(&r);
    make_model(&r);
    bool good = r.shards <= SHARDS && (!argument("resume") || resume(&r)) && train(&r, atoi(argv[2]));
    for (int s = 0; s < SHARDS; s++)
        weft_plan_free(r.part + s);
    return ended(r.rank, r.w, good);
}
