/* slow.c - a transport that adds the delays of a network to another one, WEFT_SLOW_OF (path of its plug-in).
 *
 * A rank sends one message at a time at WEFT_SLOW_RATE bytes per second. It arrives WEFT_SLOW_LATENCY seconds
 * later. This measures on one machine the cost of a network, and how much of it overlaps with work: the time
 * passes while the rank computes or waits. Ranks share a clock. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "parallel/transport.h"
#include "clock.h"

/* box: the time of arrival, then the bytes */
typedef struct message { int inner; double *box; void *to; size_t n; bool there; } message;

static const weft__transport *below;
static message *messages;
static int room, *spare, spares, here;
static double rate, latency, link_free;

static double number_in(const char *variable, double otherwise)
{
    return getenv(variable) ? strtod(getenv(variable), NULL) : otherwise;
}

static bool open_slow(weft__world *world, char *version, size_t version_size, char *why, size_t why_size)
{
    const char *path = getenv("WEFT_SLOW_OF");
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void *symbol = library ? dlsym(library, "weft_transport_open_v1") : NULL;
    const weft__transport *(*hello)(void) = NULL;
    memcpy(&hello, &symbol, sizeof hello);
    rate = number_in("WEFT_SLOW_RATE", 117e6), latency = number_in("WEFT_SLOW_LATENCY", 30e-6);
    if (!hello) {
        snprintf(why, why_size, "WEFT_SLOW_OF is not the plug-in of a transport");
        return false;
    }
    bool open = (below = hello())->open(world, version, version_size, why, why_size);
    here = world->rank;
    return open;
}

/* ---- messages ---- */
static int new_message(void *to, size_t n)
{
    if (!spares) {
        int more = room ? 2 * room : 256;
        messages = realloc(messages, (size_t)more * sizeof *messages);
        spare = realloc(spare, (size_t)more * sizeof *spare);
        for (int i = more; i-- > room;)
            spare[spares++] = i;
        room = more;
    }
    int i = spare[--spares];
    messages[i] = (message){ .box = malloc(n + sizeof(double)), .to = to, .n = n };
    return i;
}

static void put_in_box(int i, const void *bytes, size_t n)
{
    double start = now();
    link_free = (link_free > start ? link_free : start) + (double)n / rate;
    messages[i].box[0] = link_free + latency;
    memcpy(messages[i].box + 1, bytes, n);
}

static int post_send(int to, int tag, const void *bytes, size_t n)
{
    int i = new_message(NULL, n);
    put_in_box(i, bytes, n);
    messages[i].inner = below->post_send(to, tag, messages[i].box, n + sizeof(double));
    return i;
}

static int post_recv(int from, int tag, void *bytes, size_t n)
{
    int i = new_message(bytes, n);
    messages[i].inner = below->post_recv(from, tag, messages[i].box, n + sizeof(double));
    return i;
}

static int over(int i, int answer)
{
    free(messages[i].box);
    spare[spares++] = i;
    return answer;
}

static int test(int i)
{
    message *m = &messages[i];
    int is = m->there ? 1 : m->inner < 0 ? WEFT__LOST : below->test(m->inner);
    if (is != 1)
        return is ? over(i, is) : 0;
    m->there = true;
    if (!m->to)
        return over(i, 1);
    if (now() < m->box[0])
        return 0;
    memcpy(m->to, m->box + 1, m->n);
    return over(i, 1);
}

static int wait_for(int i, double seconds)
{
    double until = now() + seconds;
    int is;
    while (!(is = test(i)) && now() < until)
        ;
    return is;
}

/* Costs root one message, as in a chain. */
static int broadcast(int root, void *bytes, size_t n)
{
    int i = new_message(root == here ? NULL : bytes, n);
    if (root == here)
        put_in_box(i, bytes, n);
    messages[i].inner = below->broadcast(root, messages[i].box, n + sizeof(double));
    return i;
}
static void give_up(int status) { below->abort(status); }

__attribute__((visibility("default"))) const weft__transport *weft_transport_open_v1(void)
{
    static const weft__transport slow = { WEFT__TRANSPORT_ABI, "slow", open_slow, post_send, post_recv,
                                          test, wait_for, broadcast, give_up, NULL };
    return &slow;
}
