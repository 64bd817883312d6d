/* order.cpp - reports the order of fences and atomics to ThreadSanitizer, by PTX's memory model.
 *
 * Work before a fence of thread A is ordered before work after a fence of thread B if A changes a number by
 * an atomic after its fence, and B reads that change by an atomic before its fence. An atomic without a fence
 * orders nothing. A fence does not order another thread's writes, unless a barrier separates them. */
#include <algorithm>
#include <map>
#include "tests/emu/launch.h"

#if defined(__SANITIZE_THREAD__)
namespace emu {
void fence()
{
    Quiet quiet;
    for (void *p : me->seen)
        acquire(p);
    me->seen.clear();
    if (!me->fenced)
        me->fenced = new char;
    release(me->fenced);
}

/* Returns a fiber that publishes the work of a thread up to its last fence. The thread itself could publish
 * only its work up to now. */
static void *courier_of(void *thread)
{
    static std::map<void *, void *> &couriers = *new std::map<void *, void *>;
    void *&courier = couriers[thread];
    if (!courier)
        courier = __tsan_create_fiber(0);
    return courier;
}
__attribute__((no_sanitize("thread"), noinline)) static void carry(void *by, void *from, void *to, void *back)
{
    __tsan_switch_to_fiber(by, 1 /* orders nothing */);
    __tsan_acquire(from), __tsan_release(to);
    __tsan_switch_to_fiber(back, 1);
}
void publish(void *p)
{
    Quiet quiet;
    if (me->fenced)
        carry(courier_of(me->tsan), me->fenced, p, me->tsan);
}

void witness(void *p)
{
    Quiet quiet;
    if (std::find(me->seen.begin(), me->seen.end(), p) == me->seen.end())
        me->seen.push_back(p);
}
} // namespace emu
#endif
