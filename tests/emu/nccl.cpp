/* nccl.cpp - emulates libnccl.so.2: copies bytes between emulated GPUs of threads or processes. The id names
 * a piece of shared memory. It has a small buffer for each ordered pair of ranks, which the sender fills and
 * the receiver empties.
 *
 * Communicators do not block and are as late as allowed. A group enters its stream at the second call of
 * ncclCommGetAsyncError after it; a call before that is refused. As on a GPU, work waits for the other ranks
 * without a limit, until ncclCommAbort. Undefined uses of NCCL are errors: lengths that differ, memory
 * outside a device. Environment:
 *     WEFT_EMU_NCCL_FAULT  fail:1:3: the third group of rank 1 fails; 0: it does not join; kill and stop send
 *                          SIGKILL and SIGSTOP to the process
 *     WEFT_EMU_NCCL_SAYS   1: prints the groups and bytes of a communicator at its end */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <vector>
#include "tests/emu/cuda_emu.h"

#define API extern "C" __attribute__((visibility("default")))

namespace {
enum { MOST = 16, ROOM = 1 << 14, VERSION = NCCL_VERSION_CODE };
struct Box { std::atomic<int> full; size_t n, all; char bytes[ROOM]; };
struct World { std::atomic<int> arrived; Box box[MOST][MOST]; };
struct Op { bool send; int peer; char *at; size_t bytes, done; cudaStream_t stream; };
typedef std::vector<Op> Group;

World *world_of(const ncclUniqueId &id, bool make)
{
    int file = shm_open(id.internal, O_RDWR | (make ? O_CREAT | O_EXCL : 0), 0600);
    void *at = MAP_FAILED;
    if (file >= 0 && (!make || ftruncate(file, sizeof(World)) == 0))
        at = mmap(NULL, sizeof(World), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    return at == MAP_FAILED ? NULL : (World *)at;
}
} // namespace

struct emu_comm {
    ncclUniqueId id;
    World *world;
    int rank, ranks, polls;
    std::atomic<bool> ended;
    ncclResult_t state;
    bool joined;
    std::shared_ptr<Group> next;                 /* complete, but not yet in its stream */
    std::deque<std::shared_ptr<Group>> active;
    long groups; size_t bytes;
};

namespace {
thread_local int depth;
thread_local Group open_group;
thread_local emu_comm *group_comm;

/* ---- a message ---- */
bool move_chunk(emu_comm *c, Op &op)             /* false: it has to wait */
{
    Box &box = op.send ? c->world->box[c->rank][op.peer] : c->world->box[op.peer][c->rank];
    if (box.full.load(std::memory_order_acquire) == op.send)
        return false;
    if (op.send) {
        box.all = op.bytes;
        box.n = op.bytes - op.done < ROOM ? op.bytes - op.done : (size_t)ROOM;
        memcpy(box.bytes, op.at + op.done, box.n);
    } else if (box.all != op.bytes) {
        fprintf(stderr, "emulated NCCL: rank %d sends %zu bytes; rank %d expects %zu\n", op.peer,
                box.all, c->rank, op.bytes);
        c->state = ncclInvalidUsage;
        return false;
    } else
        memcpy(op.at + op.done, box.bytes, box.n);
    op.done += box.n;
    box.full.store(op.send, std::memory_order_release);
    return true;
}

/* For each rank and direction, moves the first unfinished message. */
bool group_is_over(emu_comm *c, Group &g)
{
    unsigned busy[2] = { 0, 0 };
    bool all = true;
    for (Op &op : g) {
        unsigned bit = 1u << op.peer;
        while (op.done < op.bytes && !(busy[op.send] & bit) && move_chunk(c, op))
            ;
        if (op.done < op.bytes) {
            all = false;
            busy[op.send] |= bit;
        }
    }
    return all;
}

void destroy(emu_comm *c) { munmap(c->world, sizeof *c->world), delete c; }

bool run_group(void *user)
{
    emu_comm *c = (emu_comm *)user;
    if (!c->ended && !group_is_over(c, *c->active.front()))
        return false;
    c->active.pop_front();
    if (c->ended && c->active.empty())
        destroy(c);
    return true;
}

/* Applies WEFT_EMU_NCCL_FAULT to this group. */
ncclResult_t planned_fault(const emu_comm *c)
{
    const char *value = getenv("WEFT_EMU_NCCL_FAULT");
    char kind[8] = "";
    int rank = -1;
    long group = -1;
    if (!value || sscanf(value, "%7[a-z]:%d:%ld", kind, &rank, &group) != 3 || rank != c->rank ||
        group != c->groups)
        return ncclSuccess;
    if (strcmp(kind, "fail"))
        raise(strcmp(kind, "kill") ? SIGSTOP : SIGKILL);
    return ncclSystemError;
}

void launch(emu_comm *c)
{
    std::shared_ptr<Group> g = std::move(c->next);
    c->next = NULL, c->groups++;
    c->state = planned_fault(c);
    if (c->state != ncclSuccess || g->empty())
        return;
    for (const Op &op : *g)
        c->bytes += op.send ? op.bytes : 0;
    c->active.push_back(g);
    weft_emu_until((*g)[0].stream, run_group, c);
}

ncclResult_t add(Op op, size_t n, ncclDataType_t type, emu_comm *c)
{
    op.bytes = n * (type == ncclFloat32 ? 4 : 8);
    if (!depth || c->state != ncclSuccess || (group_comm && group_comm != c))
        return ncclInvalidUsage;
    if (op.peer < 0 || op.peer >= c->ranks || op.peer == c->rank || !weft_emu_holds(op.at, op.bytes) ||
        (!open_group.empty() && open_group[0].stream != op.stream))
        return ncclInvalidArgument;
    group_comm = c;
    open_group.push_back(op);
    return ncclSuccess;
}
} // namespace

API ncclResult_t ncclGetVersion(int *version) { return *version = VERSION, ncclSuccess; }

API ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static std::atomic<int> made;
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "/weft_nccl_%ld_%d", (long)getpid(), made++);
    World *w = world_of(*id, true);
    return w ? munmap(w, sizeof *w), ncclSuccess : ncclSystemError;
}

API ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int ranks, ncclUniqueId id, int rank,
                                        ncclConfig_t *config)
{
    *out = NULL;
    World *w = ranks <= MOST && rank >= 0 && rank < ranks && !config->blocking ? world_of(id, false) : NULL;
    if (!w)
        return ncclInvalidArgument;
    if (++w->arrived == ranks)
        shm_unlink(id.internal);                 /* so a killed process leaves no file */
    *out = new emu_comm{ id, w, rank, ranks, 0, { false }, ncclInProgress, false, NULL, {}, 0, 0 };
    return ncclInProgress;
}

API ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *result)
{
    enum { LATE = 2 };
    if (c->state == ncclInProgress && ++c->polls >= LATE) {
        if (!c->joined && c->world->arrived == c->ranks) {
            c->joined = true;
            c->state = planned_fault(c);
        } else if (c->next)
            launch(c);
    }
    *result = c->state;
    return ncclSuccess;
}

API ncclResult_t ncclGroupStart() { return depth++, ncclSuccess; }

API ncclResult_t ncclGroupEnd()
{
    emu_comm *c = group_comm;
    if (!depth)
        return ncclInvalidUsage;
    if (--depth || !c)
        return ncclSuccess;
    c->next = std::make_shared<Group>(std::move(open_group));
    open_group.clear(), group_comm = NULL;
    c->polls = 0;
    return c->state = ncclInProgress;
}

API ncclResult_t ncclSend(const void *at, size_t n, ncclDataType_t type, int to, ncclComm_t c, cudaStream_t s)
{
    return add(Op{ true, to, (char *)(uintptr_t)at, 0, 0, s }, n, type, c);
}
API ncclResult_t ncclRecv(void *at, size_t n, ncclDataType_t type, int from, ncclComm_t c, cudaStream_t s)
{
    return add(Op{ false, from, (char *)at, 0, 0, s }, n, type, c);
}

/* Work in a stream ends in stream order. */
API ncclResult_t ncclCommAbort(ncclComm_t c)
{
    const char *value = getenv("WEFT_EMU_NCCL_SAYS");
    if (value && *value == '1')
        fprintf(stderr, "emulated NCCL: rank %d of %d: %ld groups, %zu bytes\n", c->rank, c->ranks, c->groups,
                c->bytes);
    c->ended = true;
    shm_unlink(c->id.internal);
    if (c->active.empty())
        destroy(c);
    return ncclSuccess;
}

API const char *ncclGetErrorString(ncclResult_t r)
{
    static const char *const text[] = { "no error",         "unhandled cuda error", "unhandled system error",
                                        "internal error",   "invalid argument",     "invalid usage",
                                        "remote process exited or there was a network error", "in progress" };
    return text[r];
}
