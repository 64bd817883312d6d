/* checkpoint.c - checkpoints of several ranks.
 *
 * Rank 0 writes or reads the file, and all ranks return its status. Rank 0 sends the bytes that it has read
 * to all others, so only rank 0 needs the file. */
#include <stdlib.h>
#include <string.h>
#include "parallel/parallel.h"

static const char item_name[] = "parallel.shards";

enum { SLICE = 1 << 30 };                        /* bytes of a broadcast: MPI counts in int */

typedef struct { int32_t status; int64_t size; char text[480]; } result;

/* Returns the status of rank 0, or for `all` that of the first rank that has failed, on all ranks. */
static weft_status share_status(weft_parallel *p, const char *operation, weft_status own_status, bool all)
{
    result r = { .status = own_status, .size = (int64_t)p->image.size };
    snprintf(r.text, sizeof r.text, "%.479s", own_status ? weft_file_message() : "");
    if (!p->transport)
        return own_status;
    if (!weft__hand_out(p, operation, &r, sizeof r))
        return weft__file_fail(p->lost ? WEFT_EDEVICE : weft_error_code(p->w), "%s",
                               weft_error_message(p->w));
    weft__end_texts(p, offsetof(result, text), sizeof r.text);
    for (int q = 0; q < (all ? p->world.ranks : 1); q++) {
        const result *results = weft__words_of(p, q);
        if (results->status)
            return weft__file_fail((weft_status)results->status, "rank %d: %s", q, results->text);
    }
    return WEFT_OK;
}

/* Returns the program's items and the number of shards, to be released; NULL: invalid items, or memory is
 * short. */
static weft_checkpoint_item *with_shards(weft_parallel *p, const weft_checkpoint_item *items, int64_t n,
                                         int64_t *shards)
{
    weft_checkpoint_item *all = n >= 0 && (items || !n) && n < INT32_MAX ?
                                    weft__allocate(p->w, (size_t)(n + 1) * sizeof *all) : NULL;
    if (all && n)
        memcpy(all, items, (size_t)n * sizeof *all);
    if (all)
        all[n] = (weft_checkpoint_item){ item_name, WEFT_I64, shards, 1 };
    return all;
}

/* arguments of a call */
typedef struct file {
    const char *path; weft_module *m; weft_optim *o; const weft_checkpoint_item *items; int64_t n;
} file;
typedef weft_status work(weft_parallel *, const char *operation, const file *);

/* Reports the failure of the context or the loss of a rank. */
static weft_status failed(const weft_parallel *p, const char *operation, const char *path)
{
    return weft__file_fail(p->lost ? WEFT_EDEVICE : weft_error_code(p->w), "%s: %s: %s", operation,
                           path ? path : "", weft_error_message(p->w));
}

/* Does the work on all ranks, and repeats it if a rank is lost. */
static weft_status run_on_all(weft_parallel *p, const char *operation, work *once, const file *f)
{
    weft_status s;
    if (!p || !p->w)
        return weft__file_fail(WEFT_EARG, "%s: %s: parallel is NULL, or its creation failed; expected a "
                                          "parallel", operation,
                               f->path ? f->path : "");
    weft__begin_call(p);
    do {
        const weft__fingerprint states = { "the states that shards carry", weft__fingerprint_of_states(p) };
        weft__states_reserve(p);  /* without memory the context fails, and weft__agree reports it to all */
        s = weft__agree(p, operation, &states, 1) ? once(p, operation, f) : failed(p, operation, f->path);
    } while (weft__repeat_call(p));
    return s;
}

/* ---- saving ---- */
static weft_status save(weft_parallel *p, const char *operation, const file *f)
{
    weft_status status = WEFT_OK;
    int64_t shards = p->shards;
    if (!weft__share_states(p, operation))
        return failed(p, operation, f->path);
    if (p->world.rank == 0) {
        weft_checkpoint_item *all = with_shards(p, f->items, f->n, &shards);
        status = weft_save(f->path, f->m, f->o, all ? all : f->items, f->n + (all != NULL));
        weft__release(p->w, all);
    }
    return share_status(p, operation, status, false);
}

weft_status weft_parallel_save(weft_parallel *p, const char *path, weft_module *m, weft_optim *o,
                               const weft_checkpoint_item *items, int64_t n)
{
    return run_on_all(p, "weft_parallel_save", save, &(file){ path, m, o, items, n });
}

/* ---- loading ---- */
static void forget_image(weft_parallel *p)
{
    free(p->image.bytes);
    p->image = (weft__image){ 0 };
}

/* Keeps the image after a failure: the transport may still use it. */
static weft_status hand_out_image(weft_parallel *p, const char *operation, const char *path)
{
    for (size_t offset = 0; offset < p->image.size; offset += SLICE) {
        size_t remaining = p->image.size - offset;
        weft__request r = {
            p->transport->broadcast(0, p->image.bytes + offset, remaining < SLICE ? remaining : SLICE), 0
        };
        if (!weft__await(p, operation, &r, 1))
            return failed(p, operation, path);
    }
    return WEFT_OK;
}

static weft_status read_once(weft_parallel *p, const char *operation, const char *path)
{
    forget_image(p);
    weft_status s = p->world.rank ? WEFT_OK : weft__read_checkpoint(path, &p->image);
    s = share_status(p, operation, s, false);
    if (s || p->world.ranks < 2)
        return s;
    p->image.size = (size_t)((const result *)weft__words_of(p, 0))->size;
    if (p->world.rank)
        p->image.bytes = malloc(p->image.size);
    s = p->image.bytes ? WEFT_OK :
                         weft__file_fail(WEFT_ENOMEM, "%s: no memory for %s, %zu bytes", operation, path,
                                         p->image.size);
    s = share_status(p, operation, s, true);
    return s ? s : hand_out_image(p, operation, path);
}

/* Takes the number of shards from the file, if the options gave none. */
static weft_status take_shards(weft_parallel *p, const char *path, int64_t *shards)
{
    weft_checkpoint_item item = { item_name, WEFT_I64, shards, 1 };
    weft_status s = weft__load_image(path, &p->image, NULL, NULL, &item, 1);
    if (s)
        return s;
    if (p->shards_given && *shards != p->shards)
        return weft__file_fail(WEFT_EARG,
                               "weft_parallel_load: %s: saved by a run of %lld shards; expected %d, as in "
                               "the options; results depend on the number of shards: set .shards to 0 to use "
                               "the number in the file",
                               path, (long long)*shards, p->shards);
    if (*shards < p->world.ranks || *shards > WEFT__SHARDS)
        return weft__file_fail(
            WEFT_EARG,
            "weft_parallel_load: %s: saved by a run of %lld shards, for %d ranks; expected at least one "
            "shard for each rank; start fewer ranks",
            path, (long long)*shards, p->world.ranks);
    return WEFT_OK;
}

static weft_status load(weft_parallel *p, const char *operation, const file *f)
{
    int64_t shards = 0;
    weft_status s = read_once(p, operation, f->path);
    if (s)
        return s;
    /* all ranks check before any rank changes anything */
    s = share_status(p, operation, take_shards(p, f->path, &shards), true);
    if (!s)
        s = share_status(p, operation, weft__load_image(f->path, &p->image, f->m, f->o, f->items, f->n),
                         true);
    forget_image(p);
    if (s || p->shards == shards)
        return s;
    p->shards = (int)shards;
    p->own_shards = weft__shards_of(p->shards, p->world.rank, p->world.ranks);
    return WEFT_OK;
}

weft_status weft_parallel_load(weft_parallel *p, const char *path, weft_module *m, weft_optim *o,
                               const weft_checkpoint_item *items, int64_t n)
{
    return run_on_all(p, "weft_parallel_load", load, &(file){ path, m, o, items, n });
}
