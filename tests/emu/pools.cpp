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
struct FreePiece { size_t bytes; cudaStream_t stream; bool done; }; /* done: freed in stream order */
}
struct emu_pool {
    int device; size_t held, used, pieces; uint64_t threshold; bool destroyed;
    std::vector<std::shared_ptr<FreePiece>> free_pieces;
};

namespace {
void trim(emu_pool *pool, size_t least)          /* frees unused memory, down to `least` bytes */
{
    auto &free_pieces = pool->free_pieces;
    for (size_t i = free_pieces.size(); i-- > 0 && pool->held > least;)
        if (free_pieces[i]->done) {
            pool->held -= free_pieces[i]->bytes;
            emu::held(pool->device) -= free_pieces[i]->bytes;
            free_pieces.erase(free_pieces.begin() + (std::ptrdiff_t)i);
        }
    if (pool->destroyed && !pool->pieces && free_pieces.empty())
        delete pool;
}

/* Takes the smallest usable piece, or a new one. Returns its size; 0: out of memory. */
size_t take_piece(emu_pool *pool, size_t bytes, cudaStream_t stream)
{
    auto best = pool->free_pieces.end();
    for (auto i = pool->free_pieces.begin(); i != pool->free_pieces.end(); ++i)
        if ((*i)->bytes >= bytes && ((*i)->done || (*i)->stream == stream) &&
            (best == pool->free_pieces.end() || (*i)->bytes < (*best)->bytes))
            best = i;
    if (best != pool->free_pieces.end()) {
        const size_t all = (*best)->bytes;
        pool->free_pieces.erase(best);
        return all;
    }
    if (bytes > emu::limit() || emu::held(pool->device) + bytes > emu::limit())
        return 0;
    pool->held += bytes;
    emu::held(pool->device) += bytes;
    return bytes;
}
} // namespace

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const cudaMemPoolProps *props)
{
    emu::Locked locked;
    *pool = NULL;
    if (emu::setting("WEFT_EMU_POOLS", 1) == 2 || emu::setting("WEFT_EMU_POOLS", 1) == 0)
        return emu::note(cudaErrorNotSupported);
    if (props->allocType != cudaMemAllocationTypePinned ||
        props->location.type != cudaMemLocationTypeDevice || props->handleTypes != cudaMemHandleTypeNone)
        return emu::note(cudaErrorInvalidValue);
    *pool = new emu_pool{ props->location.id, 0, 0, 0, 0, false, {} };
    return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    emu::Locked locked;
    pool->destroyed = true;
    trim(pool, 0);
    return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void *value)
{
    memcpy(&pool->threshold, value, sizeof pool->threshold);
    /* other thresholds act at each wait: not emulated */
    return which == cudaMemPoolAttrReleaseThreshold && pool->threshold == UINT64_MAX ?
               cudaSuccess :
               emu::note(cudaErrorInvalidValue);
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr which, void *value)
{
    const uint64_t current = which == cudaMemPoolAttrReservedMemCurrent ? pool->held : pool->used;
    memcpy(value, &current, sizeof current);
    return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t least)
{
    emu::Locked locked;
    trim(pool, least);
    return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void **p, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    emu::Locked locked;
    *p = NULL;
    cudaError_t e = emu::check_stream(stream);
    if (e == cudaSuccess && emu::setting("WEFT_EMU_POOLS", 1) == 3)
        e = emu::note(cudaErrorNotSupported);
    if (e != cudaSuccess || !bytes)
        return e;
    const size_t all = take_piece(pool, bytes, stream);
    if (!all || !(*p = emu::piece_of(pool, bytes, all, pool->device)))
        return emu::note(cudaErrorMemoryAllocation);
    pool->used += bytes, pool->pieces++;
    emu::enqueue(stream, [address = *p] { emu::piece_begins(address); });
    return cudaSuccess;
}
cudaError_t cudaFreeAsync(void *p, cudaStream_t stream)
{
    emu::Locked locked;
    size_t bytes, all;
    emu_pool *pool = emu::piece_ends(p, &bytes, &all);
    if (!pool)
        return emu::note(cudaErrorInvalidValue);
    auto free_pieces = std::make_shared<FreePiece>(FreePiece{ all, stream, false });
    pool->used -= bytes, pool->free_pieces.push_back(free_pieces);
    auto end = [=] {
        emu::piece_is_gone(p);
        free_pieces->done = true, pool->pieces--;
        if (pool->destroyed)
            trim(pool, 0);
    };
    const cudaError_t e = emu::check_stream(stream);
    if (e == cudaSuccess)
        emu::enqueue(stream, end);
    else
        end();                                   /* of a lost device */
    return e;
}
