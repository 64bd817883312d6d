/* transport.h - what moves bytes between ranks: the contract between parallel/ and its plug-ins. A transport
 * knows nothing of gradients; what is sent, in which order, and how it is added up stands in exchange.c. */
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

/* Messages between two ranks with one tag come in the order in which they were sent. A request is a number
 * from 0 on; it is over when test has said so. */
typedef struct weft__transport {
    int32_t abi;
    const char *name;                            /* "openmpi" */
    /* Joins the ranks; called once in a process. Writes at most version_size bytes to version, the name and
     * version of the library below, "Open MPI 4.1.4". Returns false on failure, with at most why_size bytes
     * of the reason in why. The caller terminates both texts. */
    bool (*open)(weft__world *, char *version, size_t version_size, char *why, size_t why_size);
    /* memory stays as it is, and there, until the request is over */
    int (*post_send)(int to, int tag, const void *bytes, size_t n);
    int (*post_recv)(int from, int tag, void *bytes, size_t n);
    /* 1: over; 0: not yet; WEFT__LOST: never, the other rank is gone */
    int (*test)(int request);
    /* test, until it is not 0 or so many seconds are over */
    int (*wait)(int request, double seconds);
    /* of all ranks, from root; a request */
    int (*broadcast)(int root, void *bytes, size_t n);
    /* ends all ranks; may return */
    void (*abort)(int status);
    /* NULL: what is lost ends the job. Else the ranks that are left become the world. */
    bool (*shrink)(weft__world *);
} weft__transport;

/* the one function that a plug-in exports */
const weft__transport *weft_transport_open_v1(void);
#ifdef __cplusplus
}
#endif
#endif
