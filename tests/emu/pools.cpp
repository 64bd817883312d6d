/* pools.cpp - emulates pools that allocate memory in stream order (runtime.h).
 *
 * The memory exists from its allocation to its free in the order of its stream. Any other access, such as
 * from another stream, crashes. For the host it ends with the call. A pool keeps freed memory until it is
 * trimmed, and reuses a piece for requests that fit. WEFT_EMU_POOLS: 0, no pools; 1, pools; 2, the device
 * reports pools but cannot create them; 3, pools exist but refuse each allocation. */
#include <stdlib.h>
#include <algorithm>
#include <memory>
#include "tests/emu/runtime.h"

namespace {
struct Rest { size_t bytes; cudaStream_t stream; bool done; };   /* done: freed in stream order */
}
struct emu_pool {
    int device; size_t held, used, pieces; uint64_t keep; bool over;
    std::vector<std::shared_ptr<Rest>> rest;
};

namespace {
void let_go(emu_pool *pool, size_t least)        /* frees unused memory, down to `least` bytes */
{
    auto &rest = pool->rest;
    for (size_t i = rest.size(); i-- > 0 && pool->held > least;)
        if (rest[i]->done) {
            pool->held -= rest[i]->bytes;
            emu::held(pool->device) -= rest[i]->bytes;
            rest.erase(rest.begin() + (std::ptrdiff_t)i);
        }
    if (pool->over && !pool->pieces && rest.empty())
        delete pool;
}

/* Takes the smallest usable piece, or a new one. Returns its size; 0: out of memory. */
size_t found(emu_pool *pool, size_t bytes, cudaStream_t stream)
{
    auto best = pool->rest.end();
    for (auto i = pool->rest.begin(); i != pool->rest.end(); ++i)
        if ((*i)->bytes >= bytes && ((*i)->done || (*i)->stream == stream) &&
            (best == pool->rest.end() || (*i)->bytes < (*best)->bytes))
            best = i;
    if (best != pool->rest.end()) {
        const size_t all = (*best)->bytes;
        pool->rest.erase(best);
        return all;
    }
    if (bytes > emu::limit() || emu::held(pool->device) + bytes > emu::limit())
        return 0;
    pool->held += bytes;
    emu::held(pool->device) += bytes;
    return bytes;
}
} // namespace

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *of)
{
    emu::Locked locked;
    *pool = NULL;
    if (emu::setting("WEFT_EMU_POOLS", 1) == 2 || emu::setting("WEFT_EMU_POOLS", 1) == 0)
        return emu::note(cudaErrorNotSupported);
    if (of->allocType != cudaMemAllocationTypePinned || of->location.type != cudaMemLocationTypeDevice ||
        of->handleTypes != cudaMemHandleTypeNone)
        return emu::note(cudaErrorInvalidValue);
    *pool = new emu_pool{ of->location.id, 0, 0, 0, 0, false, {} };
    return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    emu::Locked locked;
    pool->over = true;
    let_go(pool, 0);
    return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void *value)
{
    memcpy(&pool->keep, value, sizeof pool->keep);
    /* other thresholds act at each wait: not emulated */
    return which == cudaMemPoolAttrReleaseThreshold && pool->keep == UINT64_MAX ?
               cudaSuccess :
               emu::note(cudaErrorInvalidValue);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void *value)
{
    const uint64_t is = which == cudaMemPoolAttrReservedMemCurrent ? pool->held : pool->used;
    memcpy(value, &is, sizeof is);
    return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t least)
{
    emu::Locked locked;
    let_go(pool, least);
    return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void **p, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    emu::Locked locked;
    *p = NULL;
    cudaError_t e = emu::usable(stream);
    if (e == cudaSuccess && emu::setting("WEFT_EMU_POOLS", 1) == 3)
        e = emu::note(cudaErrorNotSupported);
    if (e != cudaSuccess || !bytes)
        return e;
    const size_t all = found(pool, bytes, stream);
    if (!all || !(*p = emu::piece_of(pool, bytes, all, pool->device)))
        return emu::note(cudaErrorMemoryAllocation);
    pool->used += bytes, pool->pieces++;
    emu::later(stream, [there = *p] { emu::piece_begins(there); });
    return cudaSuccess;
}
cudaError_t cudaFreeAsync(void *p, cudaStream_t stream)
{
    emu::Locked locked;
    size_t bytes, all;
    emu_pool *pool = emu::piece_ends(p, &bytes, &all);
    if (!pool)
        return emu::note(cudaErrorInvalidValue);
    auto rest = std::make_shared<Rest>(Rest{ all, stream, false });
    pool->used -= bytes, pool->rest.push_back(rest);
    auto end = [=] {
        emu::piece_is_gone(p);
        rest->done = true, pool->pieces--;
        if (pool->over)
            let_go(pool, 0);
    };
    const cudaError_t e = emu::usable(stream);
    if (e == cudaSuccess)
        emu::later(stream, end);
    else
        end();                                   /* of a lost device */
    return e;
}
