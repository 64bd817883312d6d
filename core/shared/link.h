/* link.h - transfers between the GPUs of two ranks, without host memory: NCCL, a part of the CUDA plug-in.
 * Ids and the loss of a rank are reported over the transport (transport.h), because a GPU would wait forever.
 *
 * No call waits. The work of open and end enters the device's stream some time later. Until `taken` returns
 * 1, nothing else may be added to this stream. After a failure, read `why` and close the link. */
#ifndef WEFT_LINK_H
#define WEFT_LINK_H
#include "core/kernels.h"

enum { WEFT__LINK_ID = 128, WEFT__LINK_FAILED = -1 };
typedef struct weft__link weft__link;

typedef struct weft__links {
    /* Writes the version ("NCCL 2.28.9") to name, and one rank's new id for all to id unless that is NULL.
     * Returns false, with the reason in why, if NCCL is not available. */
    bool (*begin_world)(weft__device *, void *id, char *name, char *why, size_t size);
    /* Joins the ranks of an id. Returns NULL and writes the reason to why on failure. */
    weft__link *(*open)(weft__device *, const void *id, int rank, int ranks, char *why, size_t size);
    /* Begin and end a group of simultaneous messages. Those from one rank to another keep their order. */
    void (*begin)(weft__link *), (*end)(weft__link *);
    void (*send)(weft__link *, int to, const real *, int64_t n);
    void (*receive)(weft__link *, int from, real *, int64_t n);
    /* Returns 1 if the last request is in the stream, 0 if not yet, or WEFT__LINK_FAILED. */
    int (*taken)(weft__link *);
    /* Returns 1 if the stream has finished, 0 if not yet, or WEFT__LINK_FAILED. */
    int (*done)(weft__link *);
    const char *(*why)(const weft__link *);
    /* Ends a link and its transfers, also after a failure. Does not wait for other ranks. */
    void (*close)(weft__link *);
} weft__links;
#endif
