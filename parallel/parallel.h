/* parallel.h - what the files of parallel/ share: the tree over shards, an update under way, what ranks say
 * to each other. */
#ifndef WEFT_PARALLEL_H
#define WEFT_PARALLEL_H
#include "core/report/profile.h"
#include "io/io.h"
#include "parallel/api_parallel.h"
#include "parallel/transport.h"
#include "plan/plan.h"

/* a tree over 2^31 shards has so many levels; a part of it so many branches at most */
enum { WEFT__DEPTH = 32, WEFT__BRANCHES = 2 * WEFT__DEPTH, WEFT__SHARDS = 1 << 20 };
/* of a shard: its loss, its weight, the program's values */
enum {
    WEFT__LOSS, WEFT__WEIGHT, WEFT__VALUES,
    WEFT__WAITED = WEFT__VALUES + WEFT_PARALLEL_VALUES,           /* of a rank, with its first branch */
    WEFT__PUT,                                   /* bytes of results, in the same way */
    WEFT__SUMS
};

/* ---- tree.c: shards [from, end) ---- */
typedef struct weft__branch { int from, end; } weft__branch;
/* Where a branch of two shards or more parts: its left half has the greatest power of two below its
 * shards. */
int weft__tree_middle(weft__branch);
/* The fewest branches of the tree over n shards that make up [from, end), in order; how many. */
int weft__tree_parts(int n, weft__branch of, weft__branch out[WEFT__BRANCHES]);
/* The shards of a rank, each at least one. */
weft__branch weft__shards_of(int shards, int rank, int ranks);

/* ---- shard_cut.c ---- */
/* Cuts n sequences, of length len[index[i]] or, without lengths, of 1, into shards: order [n] has the places
 * of shard s from start[s] to start[s + 1] - 1, rising. heap [shards], scratch [2 n]. */
void weft__cut(int64_t n, const int32_t *index, const int32_t *len, int shards, int32_t *order,
               int64_t *start, weft__bin *heap, int32_t *scratch);
/* Batches of plans, a plan for each shard. */
/* Segments of the batch; 0, and the context has failed: the plans are not those of the shards, or a rank is
 * gone with what the batch carries on. */
int64_t weft__parts_count(weft_parallel *p, const weft_plan *parts, int64_t batch);
/* Whether any part carries states to batches from .. last. */
bool weft__parts_carry(const weft_plan *parts, int shards, int64_t from, int64_t last);
void weft__deal(weft_parallel *p, const weft_plan *parts, int64_t batch);         /* as weft__cut */

/* ---- a parallel ---- */
typedef enum { WEFT__IDLE, WEFT__BETWEEN, WEFT__AT_SHARD, WEFT__ADDED } weft__state;

typedef struct weft__room_of { char *at; int64_t bytes; } weft__room_of;

/* The batch under way: its cut; [n] numbers in the data, places and, for masks, ids of the sequences shard by
 * shard. Its arrays lie in memory; device: the ids on the device. */
typedef struct weft__portion {
    int64_t n, number;                           /* number: of a plan's batch, else 0 */
    weft__room_of memory, device;
    int32_t *place, *index, *scratch;
    int64_t *id, *device_id, *start;
    weft__bin *heap;
    bool learns;                                 /* gradients are wanted */
    bool carries;                                /* states to or from it: a rank that is lost had some */
} weft__portion;

typedef struct weft__request { int number, peer; } weft__request;

/* Gradients under way, see exchange.c: of `chunks` chunks `posted` have left, `summed` are added up. */
enum { WEFT__CHUNKS = 8 };
typedef struct weft__transfer {
    weft_parallel *p;
    /* whole: every rank's piece is all; awaited: no one else may take its steps; broken: rank gone is */
    bool begun, whole, awaited, broken; int gone;
    int64_t n; real *base, *sum;                 /* [n] gradients of the root; on the host: their sum */
    int ranks, chunks, posted, summed, mine, terms;
    struct weft__term *term;                     /* [terms] `mine` of this rank, then those of others */
    /* [chunks, room] and of those of a chunk so many, of which so many are over */
    struct weft__request *request; int room, requests[WEFT__CHUNKS], over[WEFT__CHUNKS];
    int64_t offset[WEFT__CHUNKS + 1];            /* of a chunk's piece in a term of others */
} weft__transfer;

/* What has come of the batch's sequences: this rank's, n bytes of `put`; of all ranks, `most` bytes each; by
 * place, whether a sequence of this rank has one; by place, weft_parallel_result. */
typedef struct weft__results {
    int64_t n, most;
    weft__room_of put, all, marks, table;
    bool known;                                  /* on all ranks: the table stands */
} weft__results;

struct weft_parallel {
    weft *w; weft_module *module;                /* w NULL: one that could not be made */
    const weft__transport *transport;            /* NULL: alone */
    weft__world world;
    int shards; bool shards_said;
    double timeout;
    double waited, waited_by_all;                /* seconds: by this rank; of all, as last shared */
    weft__branch mine;                           /* this rank's shards */
    int64_t sequences; int32_t *len;             /* of the data; len NULL: not said */
    int64_t call, updates;                       /* the common call under way; updates so far */
    bool stopping, abandoned;                    /* abandoned: the batch under way was, by weft_recover */
    /* of lost_rank.c: a rank is lost; the call is made again; no one goes on; how often the world has shrunk
     */
    bool lost, again, ended; int losses;
    const char *differs;                         /* the name of the print that did last */
    weft__state state;
    int at;                                      /* the shard at work, or the next one */
    weft__portion batch;
    weft__shard shard;
    uint64_t draw;                               /* of the update's masks */
    /* Branches of this rank that are done, their sums; the last one's gradients are the root's, those of the
     * others in `level`, device memory. [from, from + n) of the root's flat vector is exchanged. */
    int done;
    struct { weft__room_of there, here; } kept;  /* losses [mine, 2] of shards done: on the device, here */
    double leaf[WEFT__SUMS], sums[WEFT__BRANCHES][WEFT__SUMS], total[WEFT__SUMS];
    int64_t from, n, level_room, unfolded;       /* of the last shard's [0, unfolded) is still to be added */
    real *level[WEFT__BRANCHES];
    weft__transfer transfer;
    struct { int64_t from, n; } agreed;          /* at the update before */
    int64_t least[WEFT__CHUNKS]; double looked;  /* of overlap.c: by chunk the first entry that takes it */
    weft__room_of stage, own;                    /* of exchange.c; what this rank is about to hand out */
    weft__room_of said; int64_t said_bytes;      /* of collective.c: what each rank has said last */
    weft__room_of roll;                          /* of await.c: who is there */
    /* What await.c calls while it waits, which returns whether there is such work, and where it ends the job;
     * NULL: nothing. */
    bool (*meanwhile)(weft_parallel *);
    void (*cut_off)(weft_parallel *);
    bool drain;                                  /* some ranks have sent gradients, and all fail */
    /* of gpu_link.c; link NULL: none. shared: two ranks have one GPU; tried: with the ranks of today; terms:
     * room for those of others, on the device */
    struct weft__link *link;
    struct {
        bool shared, tried, is_over; char heard, said;
        weft__request next;                      /* is_over: it has come */
        weft__room_of terms;
    } linked;
    weft__results results;
    weft__image image;                           /* of checkpoint.c: the checkpoint that is being loaded */
};

/* ---- buffer.c ---- */
/* Makes room for so many bytes; their values are lost if it grows. NULL: no memory, and the context has
 * failed. */
char *weft__at_least(weft *, weft__room_of *, int64_t bytes);
char *weft__device_at_least(weft *, weft__room_of *, int64_t bytes);

/* ---- local_tree.c: sums and gradients of shard after shard, from zeros each ---- */
/* The branches that are done before shard `at`. */
int  weft__branches_before(const weft_parallel *p, int at, weft__branch out[WEFT__BRANCHES]);
/* Takes in what the shard p->at has left; then the root's gradients are zeros again, but after the rank's
 * last shard. */
void weft__fold_shard(weft_parallel *p);
/* The same of [from, n) alone, for the rank's last shard, whose gradients are final there. */
void weft__fold_early(weft_parallel *p, int64_t from);
/* Loss and weight of the shard at work stay on its device, so that no shard waits for a GPU; after the last
 * one they are read, and added up. begin: false, and the context has failed: no memory. */
bool weft__losses_begin(weft_parallel *p);
void weft__keep_loss(weft_parallel *p, weft_loss loss);
void weft__fold_losses(weft_parallel *p);
void weft__fold_end(weft_parallel *p);           /* frees its memory */

/* ---- exchange.c ---- */
/* Takes the memory for it; false: there is none, and the context has failed. Before all agree: who fails
 * later, leaves the others waiting. */
bool weft__exchange_room(weft_parallel *p);
/* From this rank's branches to all shards: the root's gradients. False: the context has failed. */
bool weft__exchange(weft_parallel *p);
/* Its parts: it begins, unless it has; the next chunk leaves; the first chunk that is not added up is, if
 * its numbers are there, or are waited for. */
bool weft__transfer_begin(weft_parallel *p);
void weft__transfer_post(weft_parallel *p);
bool weft__transfer_step(weft_parallel *p, bool wait);
static inline bool weft__transfer_is_open(const weft_parallel *p)         /* may take a step */
{
    return p->transfer.posted > p->transfer.summed && !p->transfer.awaited && !p->transfer.broken;
}
int64_t weft__chunk_of(const weft_parallel *p, int64_t at);
int64_t weft__chunk_from(const weft_parallel *p, int chunk);
/* How it is cut, of n numbers: chunks, and of each a piece for every rank. linked: one chunk, since a GPU
 * does one after the other. */
void weft__cut_vector(weft__transfer *, int64_t n, int rank, int ranks, bool linked);
int64_t weft__piece_from(const weft__transfer *, int chunk, int rank);
int64_t weft__piece_size(const weft__transfer *, int chunk, int rank);
/* a += b, as every sum of two branches */
void weft__add(weft_parallel *, int64_t n, real *a, const real *b);

/* ---- gpu_link.c: the same between GPUs; p->link NULL: there is none, and the transport does it ---- */
/* Notes which ranks share a GPU, and warns on rank 0. False: the context has failed. */
bool weft__find_shared_devices(weft_parallel *p);
/* A common call's part: joins the GPUs of all ranks, where that is possible. False: a rank is lost, or the
 * context has failed. */
bool weft__link_up(weft_parallel *p);
void weft__link_down(weft_parallel *p);          /* until it is up again */
void weft__link_end(weft_parallel *p);
/* In a group messages are posted. watch: before the first one, after all agree. */
void weft__link_watch(weft_parallel *p), weft__link_group(weft_parallel *p, bool begins);
void weft__link_post(weft_parallel *p, bool send, int peer, real *at, int64_t n);
/* Until the last group is in the stream; until all is done, on the next rank, too. False as weft__await. */
bool weft__link_taken(weft_parallel *p, const char *what);
bool weft__link_done(weft_parallel *p, const char *what);

/* ---- halving.c: the same by fewer messages, where ranks and shards allow it ---- */
bool weft__can_halve(const weft_parallel *p);    /* once it has begun */
bool weft__exchange_halves(weft_parallel *p);

/* ---- overlap.c ---- */
/* Around the walk back of the shard at work: what is final leaves at once, where that is possible. */
void weft__overlap_begin(weft_parallel *p), weft__overlap_end(weft_parallel *p);
/* Brings the gradients that are under way to their end, after all ranks have failed. weft__again calls it. */
void weft__overlap_drain(weft_parallel *p);

/* ---- states.c: what shards carry from batch to batch, which only the rank of the shard has ---- */
uint64_t weft__print_of_states(const weft_parallel *p);
/* From each to all. room, before all agree: false, and the context has failed: no memory. */
bool weft__states_room(weft_parallel *p);
bool weft__share_states(weft_parallel *p, const char *what);

/* ---- lost_rank.c: a call that all ranks make together. If the transport outlives the loss of a rank, those
 * that are left make it once more, as
 *     weft__common(p);
 *     do what is common; while (weft__again(p)); ---- */
void weft__common(weft_parallel *p);
/* False: it is over on all ranks, or has failed. */
bool weft__again(weft_parallel *p);
/* This rank's place among those that are left, and its shards: true if they are others than before. */
bool weft__take_place(weft_parallel *p);

/* ---- collective.c ---- */
/* What must be the same on all ranks, and what it is called. */
typedef struct weft__print { const char *name; uint64_t value; } weft__print;
enum { WEFT__PRINTS = 8 };
/* Notes SIGTERM and SIGUSR1 from now on, for all ranks to stop at the next common call. */
void weft__signals_watch(void);
/* A common call: all ranks say where they are, and whether they have failed. False if any has failed or is
 * elsewhere, or if a print differs; then the context has failed, on all ranks alike. */
bool weft__agree(weft_parallel *p, const char *what, const weft__print *prints, int n);
/* After that: each rank hands out n bytes; weft__said has those of a rank, until the next time. False: a
 * rank is lost, or the context has failed. */
bool weft__hand_out(weft_parallel *p, const char *what, const void *bytes, int64_t n);
/* The same, at any time, by messages of this tag. */
bool weft__all_gather(weft_parallel *p, const char *what, int tag, const void *bytes, int64_t n);
const void *weft__said(const weft_parallel *p, int rank);
/* Terminates a text of `size` bytes at offset `at` in what each rank has handed out: it may be damaged, or of
 * a rank of another version. */
void weft__end_texts(weft_parallel *p, size_t at, size_t size);

/* ---- sums.c ---- */
/* Takes the memory for sums and gradients, before all agree: a rank that fails later leaves the others
 * waiting. False: the context has failed. */
bool weft__sums_room(weft_parallel *p);
/* Hands out sums and which parameters were reached; all ranks have the totals then. False: the context has
 * failed. */
bool weft__share_sums(weft_parallel *p);

/* ---- gather.c ---- */
void weft__results_begin(weft_parallel *), weft__results_end(weft_parallel *);
/* After the sums are shared, while weft__said has them: how many bytes of results there are. */
void weft__results_said(weft_parallel *p);
/* The results of all ranks, if there are any. False: the context has failed. */
bool weft__share_results(weft_parallel *p);

/* ---- fingerprints.c ---- */
uint64_t weft__mixed(uint64_t h, uint64_t with);
uint64_t weft__print_of_model(const weft_module *), weft__print_of_optimisers(const weft_module *);
uint64_t weft__print_of_lengths(const weft_parallel *), weft__print_of_batch(const weft_parallel *);
uint64_t weft__print_of_streams(const weft *);
/* A hash of the numbers of each parameter and buffer, to be released. */
uint64_t *weft__prints_of_values(weft_parallel *p, int64_t *n);
/* After the ranks have found that they differ: the context's message names the first parameter that does. */
void weft__name_difference(weft_parallel *p, const char *what, const uint64_t *mine, int64_t n);

/* ---- await.c ---- */
static inline double weft__seconds(void) { return (double)weft__now() * 1e-9; }
/* Until all requests are over. False: one never will be. Then p->lost is set, if the others can go on
 * without that rank; else the context has failed, naming it. Counts the seconds. */
bool weft__await(weft_parallel *p, const char *what, weft__request *request, int n);
bool weft__await_room(weft_parallel *p);         /* takes the memory that a time-out needs */
/* This one is gone, or has said nothing for too long: as weft__await, false. */
bool weft__is_lost(weft_parallel *p, int rank, const char *what);
bool weft__is_late(weft_parallel *p, int rank, const char *what);
/* A rank is gone, and no one can go on. */
void weft__give_up(weft_parallel *p, const char *what);

/* ---- transport.c ---- */
/* The process's transport, opened at the first call; *out NULL and a world of one where there is no launcher.
 * False: why there is none where there should be one. */
bool weft__transport_of(const weft__transport **out, weft__world *world, char *why, size_t size);
const char *weft__transport_version(void);

#endif
