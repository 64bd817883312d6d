/* forecast.c - forecasts a magnetic field that remembers: B(t) of a magnet with hysteresis from the current
 * I(t), ragged pasts and futures.
 *
 *     forecast --out FILE      trains; `forecast --help` lists the settings; --resume goes
 *                              on where FILE was saved
 *     forecast --test FILE              the errors on the series that were kept apart
 *     mpirun -n 4 forecast ..           the same bytes, by four processes: docs/cluster.md
 *
 * A model sees up to 200 rows of the past, (I, dI, B), and of the future, up to 80 rows, the programmed
 * current (I, dI); it gives five quantiles of B for each row. --model chooses one of six. FILE holds
 * settings, scalers, weights, the best weights so far, and all it takes to go on bit for bit. It holds no
 * times, so a run that was killed and resumed ends in the same bytes as one that was not. The log is no such
 * file: after kill -9 it repeats the epochs since FILE was saved; and seconds and steps a second are of the
 * last process. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "common/program.h"
#include "common/progress.h"
#include "forecast_arx.h"
#include "forecast_data.h"
#include "forecast_judge.h"
#include "forecast_model.h"
#include "forecast_options.h"
#include "forecast_pictures.h"

const char program[] = "forecast";

typedef struct {
    options o; model m; arx ar;
    weft_frame frame[TEST + 1];
    weft_windows *windows[TEST + 1];
    weft_optim *optim; weft_loader *loader; weft_journal *log;
    weft_parallel *parallel; bool first;         /* first: of all ranks, which speaks for them */
    const int32_t *rows;                         /* of each window of the training */
    int64_t total;                               /* updates, if it does not stop early */
    /* from here on in the file: epochs done; whether that was all */
    int64_t epochs, over;
    /* sum and number of the losses of this epoch; [epochs][PER_EPOCH] */
    double  meter[2], *history;
    weft_early_stopping stopper;
    weft_loader_state at;
    progress bar;                                /* this process */
} run;

/* ---- the file ---- */
/* What it holds beside weights, optimiser and random streams. */
enum { ITEMS = SETTINGS + WEFT_FEATURES_ITEMS + 8 };
static void items_of(run *r, weft_checkpoint_item items[ITEMS])
{
    options_items(&forecast_table, &r->o, items);
    weft_features_state(r->m.features, items + SETTINGS);
    const weft_checkpoint_item more[] = {
        { "epochs_done", WEFT_I64, &r->epochs, 1 },
        { "over", WEFT_I64, &r->over, 1 },
        { "loader", WEFT_I64, r->at.at, 4 },
        { "meter", WEFT_F64, r->meter, 2 },
        { "history", WEFT_F64, r->history, PER_EPOCH * r->o.set.epochs + 1 },
        { "best_loss", WEFT_F64, &r->stopper.best, 1 },
        { "epochs_since", WEFT_I64, &r->stopper.bad, 1 },
        { "epochs_seen", WEFT_I64, &r->stopper.seen, 1 },
    };
    memcpy(items + SETTINGS + WEFT_FEATURES_ITEMS, more, sizeof more);
}

static void save(run *r)
{
    weft_checkpoint_item items[ITEMS];
    r->at = weft_loader_get_state(r->loader);
    items_of(r, items);
    check_file(weft_parallel_save(r->parallel, r->o.out, r->m.all, r->optim, items, ITEMS));
}

static void restore(run *r)
{
    weft_checkpoint_item items[ITEMS];
    items_of(r, items);
    check_file(weft_parallel_load(r->parallel, r->o.out, r->m.all, r->optim, items, ITEMS));
    weft_loader_set_state(r->loader, r->at);
    if (r->first)
        printf("goes on after update %lld of %lld\n", (long long)weft_optim_steps(r->optim),
               (long long)r->total);
}

/* ---- training ---- */
static weft_loss loss_of(run *r, const weft_part *shard)
{
    weft_window_batch b = weft_windows_batch(r->windows[TRAIN], shard->index, shard->n, NULL);
    return model_loss(model_run(r->m.net, &b.series, NULL), b.target);
}

static void update(run *r, const int32_t *pick, int64_t n)
{
    const settings *s = &r->o.set;
    weft_parallel_begin(r->parallel, pick, n);
    for (weft_part shard; weft_parallel_next(r->parallel, &shard);)
        weft_parallel_add(r->parallel, loss_of(r, &shard));
    weft_clip_grad_norm(r->m.trained, s->clip, 0);
    int64_t warmup = s->warmup < r->total ? s->warmup : r->total;          /* a short run is all warm-up */
    weft_optim_set_lr(r->optim,
                      weft_cosine_warmup(weft_optim_steps(r->optim), r->total, s->lr, warmup, 0));
    weft_optim_step(r->optim);
    weft_ema_update(r->m.average, weft_optim_steps(r->optim));
    r->meter[0] += weft_parallel_mean(r->parallel);
    r->meter[1]++;
    r->first = progress_speaks(&r->bar, r->first, r->o.log, &r->log);
    for (int64_t i = 0; i < n; i++)
        r->bar.tokens += r->rows[pick[i]];
    weft_clear(r->m.w);
    check_context(r->m.w, "update %lld", (long long)weft_optim_steps(r->optim));
}

static double mean_loss(const run *r) { return r->meter[1] > 0 ? r->meter[0] / r->meter[1] : NAN; }

static void show(run *r)
{
    int64_t done = weft_optim_steps(r->optim);
    if (r->first && progress_due(&r->bar, done))
        progress_show(&r->bar, done, r->total, "epoch %lld of %lld  loss %.4f",
                      (long long)weft_loader_epoch(r->loader), (long long)r->o.set.epochs, mean_loss(r));
}

static void log_epoch(run *r, double loss, const score *s)
{
    weft_journal_number(r->log, "epoch", (double)r->epochs);
    weft_journal_number(r->log, "update", (double)weft_optim_steps(r->optim));
    weft_journal_number(r->log, "loss", loss);
    weft_journal_number(r->log, "validation_loss", s->loss);
    weft_journal_number(r->log, "validation_rmse", s->rmse);
    weft_journal_number(r->log, "lr", (double)weft_optim_lr(r->optim));
    progress_log(&r->bar, r->log);
    weft_journal_line_end(r->log);
}

static void end_epoch(run *r)
{
    bool best;
    double loss = mean_loss(r);
    weft_ema_swap(r->m.average);
    score s = judge(&r->m, r->m.net, r->windows[VALIDATION], &r->frame[VALIDATION]);
    weft_ema_swap(r->m.average);
    bool enough = weft_early_stopping_step(&r->stopper, s.loss, &best);
    if (best)
        model_keep(&r->m);
    const double now[PER_EPOCH] = { loss, s.loss, s.rmse };
    memcpy(r->history + PER_EPOCH * r->epochs++, now, sizeof now);
    r->meter[0] = r->meter[1] = 0;
    r->over = enough || r->epochs == r->o.set.epochs;
    if (!r->first)
        return;
    progress_wipe();
    printf("epoch %lld of %lld: loss %.5f, validation %.5f, RMSE %.5f, %.0f s%s\n", (long long)r->epochs,
           (long long)r->o.set.epochs, loss, s.loss, s.rmse, progress_seconds(&r->bar),
           best ? "" : "  (not the best)");
    fflush(stdout);
    log_epoch(r, loss, &s);
}

/* Until it is over, or a signal comes. */
static void train(run *r)
{
    bool saved = weft_optim_steps(r->optim) > 0;
    r->bar = progress_begin(weft_optim_steps(r->optim), r->parallel);
    if (!saved)
        save(r);                                 /* a path that cannot be written is better known now */
    while (!r->over && !stopping(r->parallel)) {
        int64_t n;
        const int32_t *pick = weft_loader_next(r->loader, &n);
        if (pick) {
            update(r, pick, n);
            show(r);
        } else {
            end_epoch(r);
        }
        saved = !pick || weft_optim_steps(r->optim) % r->o.every == 0;
        if (saved)
            save(r);
    }
    if (!saved)
        save(r);
    if (r->first)
        progress_wipe();
}

/* ---- what came of it ---- */
/* speed: steps a second and seconds as text. */
static void report(run *r, const char *speed)
{
    const settings *s = &r->o.set;
    const char *name = model_names[s->model];
    const weft_frame *f = &r->frame[TEST];
    score it = judge(&r->m, r->m.best, r->windows[TEST], f);
    double whole = rolling_rmse(&r->m, s, f, r->o.forecasts);
    if (!r->first)
        return;
    r->ar = arx_fit(&r->frame[TRAIN], r->windows[TRAIN], &r->frame[VALIDATION], r->windows[VALIDATION]);
    double still = baseline_rmse(NULL, f, r->windows[TEST]),
           linear = baseline_rmse(&r->ar, f, r->windows[TEST]);
    printf("RMSE on %lld windows of %lld series that it never saw:\n",
           (long long)weft_windows_counts(r->windows[TEST]).windows, (long long)f->n);
    printf("  %-22s %9.5f\n", "persistence", still);
    printf("  %-22s %9.5f   p = %d, q = %d\n", "AR-X, linear", linear, r->ar.p, r->ar.q);
    printf("  %-22s %9.5f   %.1f %% of the rows lie in the band of 90 %%\n", name, it.rmse, 100 * it.inside);
    printf("and of a forecast of whole series, from their first %lld rows on:\n", (long long)s->context);
    printf("  %-22s %9.5f\n", "AR-X, linear", arx_rolling_rmse(&r->ar, s, f));
    printf("  %-22s %9.5f\n", name, whole);
    weft_journal_number(r->log, "test_rmse", it.rmse);
    weft_journal_number(r->log, "persistence", still);
    weft_journal_number(r->log, "ar_x", linear);
    weft_journal_number(r->log, "inside", it.inside);
    weft_journal_line_end(r->log);
    if (r->o.pictures)
        draw(r->o.pictures, &(gallery){ &r->m, s, f, r->windows[TEST], &r->ar, r->epochs, r->history });
    printf("forecast: %s RMSE %.5f persistence %.5f ar-x %.5f ratio %.4f, %lld k parameters, %s\n", name,
           it.rmse, still, linear, it.rmse / linear,
           (long long)(weft_parameter_numel(r->m.trained) + 500) / 1000, speed);
}

/* ---- the two things it does ---- */
/* Series, windows and model for these settings; path: a file with the scalers, NULL: they are fitted. */
static void prepare(run *r, const char *path)
{
    const settings *s = &r->o.set;
    for (part p = TRAIN; p <= TEST; p++)
        r->frame[p] = field_series(p, &(field_opts){ s->series, s->series_seed, s->noise });
    r->m = model_new(open_context(r->o.device, s->seed, r->o.threads), s);
    weft_checkpoint_item scalers[WEFT_FEATURES_ITEMS];
    weft_features_state(r->m.features, scalers);
    if (path)
        check_file(weft_load(path, NULL, NULL, scalers, WEFT_FEATURES_ITEMS));
    else
        weft_features_fit(r->m.features, &r->frame[TRAIN]);
    r->windows[TRAIN] = windows_to_train(&r->m, s, &r->frame[TRAIN]);
    r->windows[VALIDATION] = windows_to_judge(&r->m, s, "validation", &r->frame[VALIDATION]);
    r->windows[TEST] = windows_to_judge(&r->m, s, "test", &r->frame[TEST]);
    check_context(r->m.w, "windows");
    r->first = weft_parallel_place_of(r->m.ranks).rank == 0;
    r->history = memory(PER_EPOCH * (size_t)s->epochs + 1, sizeof *r->history);
    r->stopper = (weft_early_stopping){ .patience = s->patience - 1 };
}

static void end(run *r)
{
    for (part p = TRAIN; p <= TEST; p++)
        weft_frame_free(&r->frame[p]);
    free(r->history);
    weft_journal_close(r->log);
    weft_close(r->m.w);
}

static int do_test(run *r)
{
    weft_checkpoint_item items[ITEMS];
    options_of_file(&forecast_table, &r->o, r->o.given, r->o.test);
    prepare(r, r->o.test);
    items_of(r, items);
    check_file(weft_load(r->o.test, r->m.all, NULL, items, ITEMS));
    double start = seconds();
    score it = judge(&r->m, r->m.best, r->windows[VALIDATION], &r->frame[VALIDATION]);
    char speed[64];
    snprintf(speed, sizeof speed, "%.0f windows/s",
             (double)weft_windows_counts(r->windows[VALIDATION]).windows / (seconds() - start));
    if (r->first)
        printf("the best of %lld epochs, RMSE %.5f in validation\n", (long long)r->epochs, it.rmse);
    report(r, speed);
    return 0;
}

static void begin(run *r)
{
    bool resumes = r->o.resume && is_there(r->o.out);
    if (resumes)
        options_of_file(&forecast_table, &r->o, r->o.given, r->o.out);
    prepare(r, resumes ? r->o.out : NULL);
    if (r->o.resume && !resumes && r->first)
        printf("there is no %s yet: a fresh start\n", r->o.out);
    const settings *s = &r->o.set;
    r->optim = weft_adamw_new(r->m.trained, &(weft_adam_opts){ .weight_decay = s->decay });
    weft_window_counts n = weft_windows_counts(r->windows[TRAIN]);
    r->loader = weft_loader_new(r->m.w, "train", n.windows, n.lengths,
                                &(weft_loader_opts){ .count = s->batch });
    r->rows = n.lengths;
    r->parallel = weft_parallel_new(
        r->m.trained, &(weft_parallel_opts){ .shards = (int)s->shards, .n = n.windows, .len = n.lengths });
    r->total = (n.windows + s->batch - 1) / s->batch * s->epochs;
    if (resumes)
        restore(r);
    check_context(r->m.w, "to begin");
    r->over = r->over || r->epochs == s->epochs;
    if (r->o.log && r->first)
        check_file(weft_journal_open(r->o.log, resumes, &r->log));
    weft_journal_text(r->log, "event", resumes ? "resume" : "begin");
    weft_journal_number(r->log, "update", (double)weft_optim_steps(r->optim));
    options_log(&forecast_table, &r->o, r->log);
    weft_journal_line_end(r->log);
}

static int do_train(run *r, int argc, char **argv)
{
    char speed[64];
    begin(r);
    if (weft_parallel_place_of(r->parallel).ranks == 1)
        obey_signals();
    train(r);
    if (r->over) {
        double rate = progress_rate(&r->bar, weft_optim_steps(r->optim));
        snprintf(speed, sizeof speed, "%.1f steps/s, %.0f s", rate, progress_seconds(&r->bar));
        report(r, speed);
        return 0;
    }
    if (r->first) {
        printf("stopped and saved after update %lld of %lld; to go on:\n",
               (long long)weft_optim_steps(r->optim), (long long)r->total);
        print_resume(argc, argv);
    }
    return signal_came() ? 128 + signal_came() : 0;
}

int main(int argc, char **argv)
{
    run r = { .o = command_line(argc, argv) };
    int status = r.o.test ? do_test(&r) : do_train(&r, argc, argv);
    end(&r);
    return status;
}
