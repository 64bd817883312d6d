/* transport.h - the interface between parallel/ and its plug-ins, which move bytes between ranks.
 *
 * A transport knows nothing about gradients. exchange.c decides on the bytes, their order, and the
 * sums. */
#ifndef WEFT_TRANSPORT_H
#define WEFT_TRANSPORT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
enum { WEFT__TRANSPORT_ABI = 2, WEFT__LOST = -1 };

typedef struct weft__world { int rank, ranks, local_rank, local_ranks; } weft__world;

/* Messages between two ranks with one tag arrive in the order of sending. A request is a number from 0. It
 * ends when test returns a value other than 0. */
typedef struct weft__transport {
    int32_t abi;
    const char *name;                            /* "openmpi" */
    /* Joins the ranks; called once in a process. Writes at most version_size bytes to version, the name and
     * version of the library below, "Open MPI 4.1.4". Returns false on failure, with at most
     * reason_size bytes of the reason. The caller terminates both texts. */
    bool (*open)(weft__world *, char *version, size_t version_size, char *reason, size_t reason_size);
    /* Start a message. The caller keeps the memory, unchanged, until the request has ended. Return a request;
     * negative on failure. */
    int (*post_send)(int to, int tag, const void *bytes, size_t n);
    int (*post_recv)(int from, int tag, void *bytes, size_t n);
    /* Returns 1 if the request has ended, 0 if not yet, WEFT__LOST if it never will: the other rank is
     * gone. */
    int (*test)(int request);
    /* Repeats test until it is not 0 or the seconds have passed. */
    int (*wait)(int request, double seconds);
    /* Starts a broadcast from root; all ranks call it. Returns a request. */
    int (*broadcast)(int root, void *bytes, size_t n);
    /* Ends all ranks. It may return. */
    void (*abort)(int status);
    /* Makes the remaining ranks the world after a loss. NULL: a lost rank ends the job. */
    bool (*shrink)(weft__world *);
} weft__transport;

/* The only function that a plug-in exports. */
const weft__transport *weft_transport_open_v1(void);
#ifdef __cplusplus
}
#endif
#endif
