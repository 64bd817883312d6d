/* link.h - what moves numbers from the GPU of one rank to that of another, without a way through their hosts:
 * NCCL, a part of the CUDA plug-in. It knows nothing of gradients, as transport.h knows nothing of them; ids
 * go over the transport, and so does the news that a rank is gone, for a GPU waits for ever.
 *
 * No call waits. What open and end ask for is `taken` some time later: until then nothing else may be put
 * into the device's stream. A link that has failed says why, and is of no more use. */
#ifndef WEFT_LINK_H
#define WEFT_LINK_H
#include "core/kernels.h"

enum { WEFT__LINK_ID = 128, WEFT__LINK_FAILED = -1 };
typedef struct weft__link weft__link;

typedef struct weft__links {
    /* "NCCL 2.28.9" and, unless id is NULL, an id by which ranks meet, made by one of them. False: there is
     * none here, and why. */
    bool (*begin_world)(weft__device *, void *id, char *name, char *why, size_t size);
    /* This rank of those that meet by an id; NULL: why not. */
    weft__link *(*open)(weft__device *, const void *id, int rank, int ranks, char *why, size_t size);
    /* A group: messages that are under way at once. Those from one rank to another come in order. */
    void (*begin)(weft__link *), (*end)(weft__link *);
    void (*send)(weft__link *, int to, const real *, int64_t n);
    void (*receive)(weft__link *, int from, real *, int64_t n);
    /* What was asked for last: 1: it is in the stream; 0: not yet; WEFT__LINK_FAILED */
    int (*taken)(weft__link *);
    /* All that is in the stream, in the same way. */
    int (*done)(weft__link *);
    const char *(*why)(const weft__link *);
    /* With all that it has under way; of any link, and waits for no other rank. */
    void (*close)(weft__link *);
} weft__links;
#endif
