/* training.c - runs a training with epochs, checkpoints and a log; see training.h. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "program.h"
#include "training.h"

bool training_settings_of_file(const option_table *t, void *options, const run_options *run)
{
    bool resumes = run->resume && is_there(run->out);
    if (resumes)
        options_of_file(t, options, run->given, run->out);
    return resumes;
}

void training_data(training *t, int64_t n, const int32_t *size, const int32_t *tokens, int64_t pool)
{
    const training_settings *s = t->set;
    weft_loader_opts batches = { .count = s->batch, .pool = (int)pool };
    weft_parallel_opts shards = { .shards = (int)s->shards, .n = n, .len = tokens };
    t->optim = weft_adamw_new(t->trained, &(weft_adam_opts){ .weight_decay = s->decay });
    t->loader = weft_loader_new(t->w, "train", n, size, &batches);
    t->parallel = weft_parallel_new(t->trained, &shards);
    t->tokens = tokens;
    t->total = (n + s->batch - 1) / s->batch * s->epochs;
    t->first = weft_parallel_place_of(t->parallel).rank == 0;
}

void training_keep(training *t, const weft_checkpoint_item *items, int n)
{
    if (t->item_count == 0) {
        options_items(t->table, t->options, t->items);
        t->item_count = t->table->settings;
    }
    if (t->item_count + n > TRAINING_ITEMS)
        quit(1, "a checkpoint has at most %d items", (int)TRAINING_ITEMS);
    memcpy(t->items + t->item_count, items, (size_t)n * sizeof *items);
    t->item_count += n;
}

/* ---- checkpoints and the log ---- */
static void save(training *t)
{
    t->position = weft_loader_get_state(t->loader);
    check_file(weft_parallel_save(t->parallel, t->run->out, t->all, t->optim, t->items, t->item_count));
}

void training_resume(training *t, bool resumes)
{
    if (resumes) {
        check_file(weft_parallel_load(t->parallel, t->run->out, t->all, t->optim, t->items, t->item_count));
        weft_loader_set_state(t->loader, t->position);
        training_print(t, "continuing after update %lld of %lld\n", (long long)weft_optim_steps(t->optim),
                       (long long)t->total);
    } else if (t->run->resume) {
        training_print(t, "%s does not exist yet; starting from the beginning\n", t->run->out);
    }
    t->over = t->over || t->epochs == t->set->epochs;
}

void training_open_log(training *t, bool resumes)
{
    if (t->run->log && t->first)
        check_file(weft_journal_open(t->run->log, resumes, &t->log));
    weft_journal_text(t->log, "event", resumes ? "resume" : "begin");
    weft_journal_number(t->log, "update", (double)weft_optim_steps(t->optim));
    options_log(t->table, t->options, t->log);
    weft_journal_line_end(t->log);
}

/* If the first rank is lost, another becomes the first. It then prints, and opens the log. */
static void find_first(training *t)
{
    bool now = weft_parallel_place_of(t->parallel).rank == 0;
    if (now && !t->first && t->run->log)
        check_file(weft_journal_open(t->run->log, true, &t->log));
    t->first = now;
}

void training_end_line(const training *t)
{
    double spent = training_seconds(t), waited = weft_parallel_place_of(t->parallel).waited - t->waited;
    weft_journal_number(t->log, "tokens_per_second", spent > 0 ? (double)t->seen / spent : 0);
    weft_journal_number(t->log, "waiting", spent > 0 ? waited / spent : 0);
    weft_journal_number(t->log, "seconds", spent);
    weft_journal_line_end(t->log);
}

/* ---- the bar: on a terminal ten times a second, elsewhere a line every 15 seconds ---- */
enum { AT_FIRST = 10 };                          /* updates before the bar appears */

double training_seconds(const training *t) { return seconds() - t->start; }

double training_rate(const training *t)
{
    double spent = training_seconds(t);
    return spent > 0 ? (double)(weft_optim_steps(t->optim) - t->begin) / spent : 0;
}

static bool on_terminal(void) { return isatty(STDERR_FILENO); }

static void wipe(const training *t)
{
    if (t->first && on_terminal())
        fputs("\r\033[K", stderr);
}

void training_print(const training *t, const char *format, ...)
{
    va_list arguments;
    if (!t->first)
        return;
    wipe(t);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    fflush(stdout);
}

static void show(training *t)
{
    int64_t done = weft_optim_steps(t->optim);
    double now = seconds(), spent = now - t->start;
    if (!t->first || done - t->begin < AT_FIRST || now - t->shown < (on_terminal() ? 0.1 : 15))
        return;
    t->shown = now;
    double share = t->total ? (double)done / (double)t->total : 1, rate = training_rate(t);
    double remaining = rate > 0 ? (double)(t->total - done) / rate : 0;
    weft_parallel_place place = weft_parallel_place_of(t->parallel);
    char bar[] = "                              ";
    memset(bar, '=', (size_t)(share * (sizeof bar - 1)));
    wipe(t);
    if (on_terminal())
        fprintf(stderr, "[%s] ", bar);
    fprintf(stderr, "%3.0f %%  epoch %lld of %lld  loss %.*f  %.0f tokens/s", 100 * share,
            (long long)weft_loader_epoch(t->loader), (long long)t->set->epochs, t->digits, t->loss,
            spent > 0 ? (double)t->seen / spent : 0);
    if (place.ranks > 1)
        fprintf(stderr, "  waiting %.0f %%", spent > 0 ? 100 * (place.waited - t->waited) / spent : 0);
    fprintf(stderr, "  %d:%02d left%s", (int)(remaining / 60), (int)remaining % 60,
            on_terminal() ? "" : "\n");
}

static void update(training *t, const int32_t *pick, int64_t n)
{
    const training_settings *s = t->set;
    weft_parallel_begin(t->parallel, pick, n);
    for (weft_part shard; weft_parallel_next(t->parallel, &shard);)
        weft_parallel_add(t->parallel, t->loss_of(t->user, &shard));
    weft_tensor *norm = weft_clip_grad_norm(t->trained, s->clip, 0);
    int64_t warmup = s->warmup < t->total ? s->warmup : t->total;          /* a short run has only warm-up */
    weft_optim_set_lr(t->optim, weft_cosine_schedule(weft_optim_steps(t->optim), t->total, s->lr, warmup, 0));
    weft_optim_step(t->optim);
    int64_t updates = weft_optim_steps(t->optim);
    weft_ema_update(t->average, updates);
    find_first(t);
    for (int64_t i = 0; i < n; i++)
        t->seen += t->tokens[pick[i]];
    t->after_update(t->user, norm);
    weft_clear(t->w);
    check_context(t->w, "update %lld", (long long)updates);
}

static void train(training *t)
{
    bool saved = false;
    while (!t->over && !stopping(t->parallel)) {
        int64_t n;
        const int32_t *pick = weft_loader_next(t->loader, &n);
        if (pick) {
            update(t, pick, n);
            show(t);
        } else {
            t->epochs++;
            t->over = t->after_epoch(t->user) || t->epochs == t->set->epochs;
        }
        saved = !pick || weft_optim_steps(t->optim) % t->run->every == 0;
        if (saved)
            save(t);
    }
    if (!saved)
        save(t);
    wipe(t);
}

bool training_run(training *t)
{
    weft_parallel_place place = weft_parallel_place_of(t->parallel);
    if (place.ranks == 1)
        obey_signals();
    t->start = seconds();
    t->waited = place.waited;
    t->begin = weft_optim_steps(t->optim);
    if (t->begin == 0)
        save(t);                                 /* to report a path that cannot be written now */
    train(t);
    if (!t->over && t->first) {
        printf("stopped and saved after update %lld of %lld; to continue:\n",
               (long long)weft_optim_steps(t->optim), (long long)t->total);
        print_resume(t->run);
    }
    return t->over;
}

int training_status(const training *t) { return t->over || !signal_came() ? 0 : 128 + signal_came(); }
