/* graphs.cu - weft_opts.graphs: a step's launches as one submission.
 *
 * The host runs each step as ever, and says every launch anew; only where they go is another matter. While a
 * step is held back its stream captures: launches and copies become nodes of a graph, with their arguments of
 * this very step. When something has to wait or to ask (a download, a wait, memory, a message to another
 * rank), and at the end of the step, the graph is closed, given to an executable one of the same launches
 * (cudaGraphExecUpdate), and sent. So nothing is baked in: keys of dropout, rates, ages, addresses, sizes are
 * those of the step. If the update is refused, the graph is made executable itself.
 *
 * Making costs more than launching, so a step is held back only if the one before it was known: its launches
 * were, name by name, those of one of the last KNOWN_STEPS kinds of step. The first two steps are plain in
 * any case, and find memory, cuBLAS's algorithms and the ways of recurrent layers. And there is credit: each
 * graph that has to be made costs some of it, each known step brings a little back.
 *
 * The capture is a relaxed one: other contexts of this thread, and the host program, may call what they like
 * on other streams, cudaMalloc too. Waiting for the whole device is what no capture survives: then the step
 * has failed, and there are no more graphs in this context. */
#include <stdio.h>
#include "cuda/gpu.h"

/* Longer ones are sent in pieces, so that the device begins early; and a step that is sent in more pieces
 * than that is not one for graphs. */
enum { MOST_HELD = 1024, MOST_PIECES = 16, MOST_CREDIT = 32, COST = 4 };

/* ---- what was launched ---- */
static uint64_t joined(uint64_t hash, const char *launch)
{
    hash = (hash ^ (uint64_t)(uintptr_t)launch) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}
/* If a graph is full it is sent here, behind a launch: whoever launches next looks for a failure first. */
void graphs_note(weft__device *d, const char *launch)
{
    graphs *x = &gpu_of(d)->graphs;
    x->step = joined(x->step, launch);
    x->piece = joined(x->piece, launch);
    x->held += x->open;
    if (x->open && x->held >= MOST_HELD)
        graphs_submit(d);
}

/* ---- executable graphs ---- */
static void end_made(made_graph *m)
{
    if (m->graph)
        refused(cudaGraphExecDestroy(m->graph));
    m->graph = NULL;
}
/* Its own; else that of the one that was sent longest ago, which ends. */
static made_graph *place_of(graphs *x)
{
    made_graph *least = x->made;
    for (made_graph *m = x->made; m < x->made + MADE_GRAPHS; m++) {
        if (m->graph && m->of == x->piece)
            return m;
        if (m->used < least->used)
            least = m;
    }
    end_made(least);
    least->of = x->piece;
    return least;
}
static cudaError_t make(graphs *x, made_graph *m, cudaGraph_t graph)
{
    cudaError_t error = cudaGraphInstantiate(&m->graph, graph, 0);
    x->making++, x->credit -= COST;
    if (error != cudaErrorMemoryAllocation)
        return error;
    refused(error);                              /* the others have some */
    m->graph = NULL;
    for (made_graph *other = x->made; other < x->made + MADE_GRAPHS; other++)
        end_made(other);
    return cudaGraphInstantiate(&m->graph, graph, 0);
}
static cudaError_t run(gpu *g, cudaGraph_t graph)
{
    graphs *x = &g->graphs;
    made_graph *m = place_of(x);
    cudaGraphExecUpdateResultInfo why;
    cudaError_t error = cudaSuccess;
    if (m->graph && refused(cudaGraphExecUpdate(m->graph, graph, &why)))
        end_made(m);
    if (!m->graph && (error = make(x, m, graph)) != cudaSuccess)
        m->graph = NULL;
    m->used = ++x->sent;
    return m->graph ? cudaGraphLaunch(m->graph, g->stream) : error;
}

/* ---- holding back, and sending ---- */
void graphs_begin(weft__device *d)
{
    gpu *g = gpu_of(d);
    graphs *x = &g->graphs;
    if (!x->repeats || x->open || x->pieces >= MOST_PIECES)
        return;
    if (refused(cudaStreamBeginCapture(g->stream, cudaStreamCaptureModeRelaxed)))
        x->on = x->repeats = false;
    else {
        x->open = true;
        x->held = 0;
        x->piece = 0;
    }
}
void graphs_submit(weft__device *d)
{
    gpu *g = gpu_of(d);
    graphs *x = &g->graphs;
    cudaGraph_t graph = NULL;
    if (!x->open)
        return;
    x->open = false, x->pieces++;
    const cudaError_t ended = cudaStreamEndCapture(g->stream, &graph);
    const cudaError_t error = ended == cudaSuccess && x->held ? run(g, graph) : ended;
    if (graph)
        refused(cudaGraphDestroy(graph));
    if (error == cudaSuccess)
        return;
    refused(error), x->on = x->repeats = false;
    if (ended == cudaSuccess)
        failed(d, error, "graph");
    else
        fail(d, WEFT_EDEVICE, "graph: %s: a call of CUDA that is not weft's came into the step",
             cudaGetErrorString(ended));
}
void without_graphs(weft__device *d)
{
    plain_stream_of(d);
    gpu_of(d)->graphs.repeats = false;
}

/* ---- steps ---- */
static bool is_known(graphs *x)                  /* it is from now on; an empty one says nothing */
{
    if (!x->step)
        return x->repeats;
    for (uint64_t hash : x->known)
        if (hash == x->step)
            return true;
    x->known[x->next] = x->step;
    x->next = (x->next + 1) % KNOWN_STEPS;
    return false;
}
void K(submit)(weft__device *d, bool end)
{
    if (!d->handle)
        return;
    gpu *g = gpu_of(d);
    graphs *x = &g->graphs;
    plain_stream_of(d);
    if (!end || !x->on)
        return;
    x->repeats = is_known(x);
    x->credit += x->repeats && x->step && x->credit < MOST_CREDIT;
    x->repeats = x->repeats && x->credit >= COST;
    /* the uploads of a step in one part of the ring, so that they are as many each time */
    if (x->uploaded < PART && x->uploaded > PART - g->at % PART)
        next_part(d);
    x->step = 0;
    x->pieces = 0;
    x->uploaded = 0;
}

void graphs_open(weft__device *d)
{
    gpu *g = gpu_of(d);
    g->graphs.on = d->graphs && !g->sync;
    g->graphs.credit = MOST_CREDIT;
}
void graphs_close(weft__device *d)
{
    gpu *g = gpu_of(d);
    graphs *x = &g->graphs;
    graphs_submit(d);
    if (d->graphs && d->log > 0)
        fprintf(stderr, "weft: GPU %d: %lld graphs were sent, %lld of them had to be made\n", d->index,
                (long long)x->sent, (long long)x->making);
    for (made_graph *m = x->made; m < x->made + MADE_GRAPHS; m++)
        end_made(m);
}
