/* parallel.h - shared by the files of parallel/: the tree over shards, the state of an update, and the
 * messages between ranks.
 *
 * A common call is one that all ranks make together. In it the ranks first agree: each reports its call and
 * its status, and if one rank has failed, all fail with its message. A rank that fails after that leaves the
 * others waiting. So every buffer is allocated before the ranks agree. */
#ifndef WEFT_PARALLEL_H
#define WEFT_PARALLEL_H
#include "core/report/profile.h"
#include "io/io.h"
#include "parallel/api_parallel.h"
#include "parallel/transport.h"
#include "plan/plan.h"

/* A tree over at most 2^31 shards has 32 levels. A range of shards has at most 2 branches on each level. */
enum { WEFT__DEPTH = 32, WEFT__BRANCHES = 2 * WEFT__DEPTH, WEFT__SHARDS = 1 << 20 };
/* Indices into the sums of a shard: its loss, its weight, the values of the program. */
enum {
    WEFT__LOSS, WEFT__WEIGHT, WEFT__VALUES,
    WEFT__WAITED = WEFT__VALUES + WEFT_PARALLEL_VALUES,  /* of a rank, stored with its first branch */
    WEFT__PUT,                                   /* bytes of results, stored in the same way */
    WEFT__SUMS
};

/* ---- tree.c: ranges [from, end) of shards ---- */
typedef struct weft__branch { int from, end; } weft__branch;
/* Returns the shard at which the right half of a branch begins. The branch has two shards or more. Its left
 * half has the greatest power of two below its number of shards. */
int weft__tree_middle(weft__branch);
/* Lists the fewest branches of the tree over n shards that cover the range `of`, in order. Returns their
 * number. */
int weft__tree_parts(int n, weft__branch of, weft__branch out[WEFT__BRANCHES]);
/* Returns the shards of a rank, at least one. */
weft__branch weft__shards_of(int shards, int rank, int ranks);

/* ---- shard_cut.c ---- */
/* Cuts n sequences into shards. Sequence i has the length len[index[i]]; index NULL: len[i]; len NULL: 1.
 * Shard s gets the places order[start[s]] .. order[start[s + 1] - 1], ascending. order [n], start [shards +
 * 1], heap [shards], scratch [2 n]. */
void weft__cut(int64_t n, const int32_t *index, const int32_t *len, int shards, int32_t *order,
               int64_t *start, weft__bin *heap, int32_t *scratch);
/* Batches of plans: parts [shards] has one plan for each shard. */
/* Counts the segments of the batch. Errors, with result 0: the plans are not those of the shards, or a lost
 * rank had states that the batch continues. */
int64_t weft__parts_count(weft_parallel *p, const weft_plan *parts, int64_t batch);
/* Returns whether any part carries states into batches from .. last. */
bool weft__parts_carry(const weft_plan *parts, int shards, int64_t from, int64_t last);
void weft__deal(weft_parallel *p, const weft_plan *parts, int64_t batch);  /* fills the batch, as weft__cut */

/* ---- a parallel ---- */
typedef enum { WEFT__IDLE, WEFT__BETWEEN, WEFT__AT_SHARD, WEFT__ADDED } weft__state;

typedef struct weft__buffer { char *at; int64_t bytes; } weft__buffer;

/* The current batch. The arrays [n] are in the order of the shards: numbers of the sequences in the data,
 * their places in the batch, and their ids for dropout masks. They share `memory`; `device` holds the ids for
 * a GPU. */
typedef struct weft__portion {
    int64_t n, number;                           /* number of a plan's batch, otherwise 0 */
    weft__buffer memory, device;
    int32_t *place, *index, *scratch;
    int64_t *id, *device_id, *start;
    weft__bin *heap;
    bool learns;                                 /* gradients are computed */
    bool carries;  /* states enter or leave the batch, and a lost rank would take its own along */
} weft__portion;

typedef struct weft__request { int number, peer; } weft__request;

/* An exchange of gradients in progress, see exchange.c. The first `posted` of `chunks` chunks have been sent,
 * the first `summed` are added up. */
enum { WEFT__CHUNKS = 8 };
typedef struct weft__transfer {
    weft_parallel *p;
    /* whole: the piece of each rank is the whole chunk. blocked: only the waiting function may advance it.
     * broken: lost_rank is lost. */
    bool begun, whole, blocked, broken; int lost_rank;
    int64_t n; real *base, *sum;                 /* [n] gradients of the root; on the host: their sum */
    int ranks, chunks, posted, summed, own_terms, terms;
    struct weft__term *term;                     /* [terms], first the `own_terms` terms of this rank */
    /* [chunks, room]; number of requests of each chunk, and how many of them have ended */
    struct weft__request *request; int room, requests[WEFT__CHUNKS], ended[WEFT__CHUNKS];
    int64_t offset[WEFT__CHUNKS + 1];            /* offset of a chunk's piece in a term of another rank */
} weft__transfer;

/* Results of the sequences. n: bytes in `put`, the results of this rank. part_size: the largest n of all
 * ranks, the size of each rank's part in `gathered`. marks: by place, 1 if this rank has stored
 * a result. table: by place, weft_parallel_result. */
typedef struct weft__results {
    int64_t n, part_size;
    weft__buffer put, gathered, marks, table;
    bool complete;                               /* the table is complete, on all ranks */
} weft__results;

struct weft_parallel {
    weft *w; weft_module *module;                /* w NULL: an inert one that could not be made */
    const weft__transport *transport;            /* NULL: a single process */
    weft__world world;
    int shards; bool shards_given;
    double timeout;
    double waited, waited_by_all;  /* seconds of this rank, and of all ranks at the last exchange of sums */
    weft__branch own_shards;                     /* this rank's shards */
    int64_t sequences; int32_t *len;             /* of the data; len NULL: no lengths given */
    int64_t call, updates;                       /* number of the current common call; updates so far */
    bool stopping, abandoned;                    /* abandoned: weft_recover has ended the current batch */
    /* See lost_rank.c. lost: a rank is lost in this call. again: the call is repeated. ended: the job ends.
     * losses: how often the transport has dropped ranks. */
    bool lost, again, ended; int losses;
    const char *differs;                         /* name of the fingerprint that differed last */
    weft__state state;
    int current;                                 /* the current shard, or the next one */
    weft__portion batch;
    weft__shard shard;
    uint64_t draw;                               /* step number for the update's dropout masks */
    /* Finished branches of this rank and their sums. The gradients of the last branch are those of the root,
     * the others are in `level`, on the device. The exchange covers [from, from + n) of the root's flat
     * vector. */
    int done;
    struct { weft__buffer device, host; } shard_losses;  /* [shards of this rank, 2] losses and weights */
    double leaf[WEFT__SUMS], sums[WEFT__BRANCHES][WEFT__SUMS], total[WEFT__SUMS];
    int64_t from, n, level_room, unfolded;  /* entries [0, unfolded) of the last shard are not added yet */
    real *level[WEFT__BRANCHES];
    weft__transfer transfer;
    struct { int64_t from, n; } agreed;          /* at the last update */
    int64_t least[WEFT__CHUNKS]; double looked;  /* See overlap.c. least: for each chunk, the first tape entry
                                                  * that uses its parameters. */
    weft__buffer stage, outbox;                 /* stage: see exchange.c; outbox: what this rank hands out */
    weft__buffer inbox; int64_t inbox_bytes;    /* see collective.c: the last words of each rank */
    weft__buffer roll;                          /* see await.c: the roll call */
    /* Functions that await.c calls, or NULL. meanwhile: while it waits; returns whether it had work. cut_off:
     * when it ends the job. */
    bool (*meanwhile)(weft_parallel *);
    void (*cut_off)(weft_parallel *);
    bool drain;  /* some ranks have sent gradients, but all ranks have failed */
    /* See gpu_link.c. link NULL: no link. shared: two ranks use one GPU. tried: the present ranks have tried
     * to link. terms: device memory for the terms of other ranks. */
    struct weft__link *link;
    struct {
        bool shared, tried, is_over; char received, sent;
        weft__request next;                      /* is_over: it has arrived */
        weft__buffer terms;
    } linked;
    weft__results results;
    weft__image image;                           /* see checkpoint.c: the checkpoint that is being loaded */
};

/* ---- buffer.c ---- */
/* Enlarges a buffer to at least that many bytes. Its values are lost if it grows. Returns its memory; NULL
 * and a failed context if memory is short. */
char *weft__reserve(weft *, weft__buffer *, int64_t bytes);
char *weft__device_reserve(weft *, weft__buffer *, int64_t bytes);

/* ---- local_tree.c: adds up the sums and gradients of this rank's shards; each shard starts from zeros
 * ---- */
/* Adds the results of shard p->current. Then zeroes the root's gradients, unless it was the rank's last
 * shard. */
void weft__fold_shard(weft_parallel *p);
/* Adds only entries [from, n) of the rank's last shard, whose gradients are final there. */
void weft__fold_early(weft_parallel *p, int64_t from);
/* Loss and weight of a shard stay on its device, so that no shard waits for a GPU. weft__fold_losses reads
 * them after the last one and adds them up. begin returns false if memory is short; the context has failed
 * then. */
bool weft__losses_begin(weft_parallel *p);
void weft__keep_loss(weft_parallel *p, weft_loss loss);
void weft__fold_losses(weft_parallel *p);
void weft__release_levels(weft_parallel *p);     /* frees the gradients of finished branches */

/* ---- exchange.c ---- */
/* Allocates the memory for an exchange. Returns false if memory is short; the context has failed then. Call
 * it before the ranks agree. */
bool weft__exchange_reserve(weft_parallel *p);
/* Turns the gradients of this rank's branches into those of all shards, in the root. Returns false if the
 * context has failed. */
bool weft__exchange(weft_parallel *p);
/* The parts of an exchange. begin: starts it, once. post: sends the next chunk. step: adds up the first chunk
 * that is not added up, if its numbers have arrived; wait: waits for them. */
bool weft__transfer_begin(weft_parallel *p);
void weft__transfer_post(weft_parallel *p);
bool weft__transfer_step(weft_parallel *p, bool wait);
static inline bool weft__transfer_is_open(const weft_parallel *p)         /* whether it can advance */
{
    return p->transfer.posted > p->transfer.summed && !p->transfer.blocked && !p->transfer.broken;
}
int64_t weft__chunk_of(const weft_parallel *p, int64_t at);
int64_t weft__chunk_from(const weft_parallel *p, int chunk);
/* Adds b to a, as every sum of two branches does. */
void weft__add(weft_parallel *, int64_t n, real *a, const real *b);

/* ---- gpu_link.c: the exchange between GPUs. Without a link (p->link NULL) the transport moves the bytes.
 * ---- */
/* Finds ranks that share a GPU, and warns on rank 0. Returns false if the context has failed. */
bool weft__find_shared_devices(weft_parallel *p);
/* Links the GPUs of all ranks where possible; part of a common call. Returns false if a rank is lost or the
 * context has failed. */
bool weft__link_up(weft_parallel *p);
void weft__link_down(weft_parallel *p);          /* until the next weft__link_up */
/* Messages are posted in groups. watch: before the first group, after the ranks agree. */
void weft__link_watch(weft_parallel *p), weft__link_group(weft_parallel *p, bool begins);
void weft__link_post(weft_parallel *p, bool send, int peer, real *at, int64_t n);
/* taken: waits until the last group is in the stream. done: waits until all transfers have ended, those of
 * the next rank included. Returns false like weft__await. */
bool weft__link_taken(weft_parallel *p, const char *operation);
bool weft__link_done(weft_parallel *p, const char *operation);

/* ---- halving.c: the exchange with fewer messages, for some numbers of ranks and shards ---- */
bool weft__can_halve(const weft_parallel *p);    /* after weft__transfer_begin */
bool weft__exchange_halves(weft_parallel *p);

/* ---- overlap.c ---- */
/* Enclose the backward pass of the current shard, so that chunks leave as soon as they are final, if
 * possible. */
void weft__overlap_begin(weft_parallel *p), weft__overlap_end(weft_parallel *p);
/* Completes a transfer that some ranks have begun, after all ranks have failed. weft__repeat_call
 * calls it. */
void weft__overlap_drain(weft_parallel *p);

/* ---- states.c: states that shards carry from batch to batch; only the rank of the shard has them ---- */
uint64_t weft__fingerprint_of_states(const weft_parallel *p);
/* Sends the states of each rank to all. room allocates the memory before the ranks agree; it returns false,
 * and the context has failed, if memory is short. */
bool weft__states_reserve(weft_parallel *p);
bool weft__share_states(weft_parallel *p, const char *operation);

/* ---- lost_rank.c: frames a common call. If the transport survives the loss of a rank, the remaining ranks
 * repeat the call:
 *     weft__begin_call(p);
 *     do the common work; while (weft__repeat_call(p)); ---- */
void weft__begin_call(weft_parallel *p);
/* Returns false if the call is complete on all ranks or has failed. */
bool weft__repeat_call(weft_parallel *p);
/* Updates this rank's number and its shards after a loss. Returns whether they have changed. */
bool weft__update_place(weft_parallel *p);

/* ---- collective.c ---- */
/* A fingerprint: a hash of something that must be equal on all ranks, with its name for messages. */
typedef struct weft__fingerprint { const char *name; uint64_t value; } weft__fingerprint;
enum { WEFT__PRINTS = 8 };
/* Makes SIGTERM and SIGUSR1 set a flag, which stops all ranks at the next common call. */
void weft__signals_watch(void);
/* Opens a common call: exchanges the call, the status and the fingerprints of all ranks. Returns false, with
 * the same failure on all ranks, if a rank has failed or is in another call, or if a fingerprint differs. */
bool weft__agree(weft_parallel *p, const char *operation, const weft__fingerprint *prints, int n);
/* Sends n bytes of each rank to all, after weft__agree. weft__words_of returns those of a rank until the next
 * call. Returns false if a rank is lost or the context has failed. */
bool weft__hand_out(weft_parallel *p, const char *operation, const void *bytes, int64_t n);
/* Like weft__hand_out, at any time, by messages with this tag. */
bool weft__all_gather(weft_parallel *p, const char *operation, int tag, const void *bytes, int64_t n);
const void *weft__words_of(const weft_parallel *p, int rank);
/* Terminates a text of `size` bytes at offset `at` of the bytes of every rank. A damaged message, or one of
 * another version, may lack its end. */
void weft__end_texts(weft_parallel *p, size_t at, size_t size);

/* ---- sums.c ---- */
/* Allocates the memory for sums and gradients, before the ranks agree. Returns false if the context has
 * failed. */
bool weft__sums_reserve(weft_parallel *p);
/* Exchanges the sums, and which parameters got a gradient; fills p->total. Returns false if the context has
 * failed. */
bool weft__share_sums(weft_parallel *p);

/* ---- gather.c ---- */
/* Computes the size of the results, while weft__words_of has the sums. */
void weft__results_measure(weft_parallel *p);
/* Sends the results of all ranks to all, if there are any. Returns false if the context has failed. */
bool weft__share_results(weft_parallel *p);

/* ---- fingerprints.c ---- */
uint64_t weft__hash_mix(uint64_t h, uint64_t with);
uint64_t weft__fingerprint_of_model(const weft_module *);
uint64_t weft__fingerprint_of_optimisers(const weft_module *);
uint64_t weft__fingerprint_of_lengths(const weft_parallel *);
uint64_t weft__fingerprint_of_batch(const weft_parallel *);
uint64_t weft__fingerprint_of_streams(const weft *);
/* Returns a hash of the values of each of the *n parameters and buffers, to be released; NULL if memory is
 * short. */
uint64_t *weft__fingerprints_of_values(weft_parallel *p, int64_t *n);
/* Names the first parameter that differs in the context's message, after the hashes of values differed. */
void weft__name_difference(weft_parallel *p, const char *operation, const uint64_t *own, int64_t n);

/* ---- await.c ---- */
static inline double weft__seconds(void) { return (double)weft__now() * 1e-9; }
/* Waits until all requests have ended, and counts the seconds. Returns false if one never ends. Then p->lost
 * is set if the others can continue without that rank; otherwise the context has failed with a message that
 * names it. */
bool weft__await(weft_parallel *p, const char *operation, weft__request *request, int n);
bool weft__await_reserve(weft_parallel *p);      /* allocates the memory that a timeout needs */
/* Handle a rank that is lost, or that has been silent for too long. They return false, as weft__await. */
bool weft__is_lost(weft_parallel *p, int rank, const char *operation);
bool weft__is_late(weft_parallel *p, int rank, const char *operation);
/* Ends the job: a rank is lost, and the others cannot continue. */
void weft__end_job(weft_parallel *p, const char *operation);

/* ---- transport.c ---- */
/* Returns the transport of the process, which the first call opens. *out is NULL, with a world of one rank,
 * if no launcher has started ranks. Returns false, with a reason, if the transport cannot be
 * opened. */
bool weft__transport_of(const weft__transport **out, weft__world *world, char *reason, size_t size);
const char *weft__transport_version(void);

#endif
