/* order.cpp - what fences and atomics order, for ThreadSanitizer, as PTX's memory model has it: what comes
 * before a fence of one thread comes before what follows a fence of another, if behind the first fence the
 * first thread changed a number by an atomic, and before the second fence the other found it so. An atomic
 * without a fence orders nothing; neither does one thread's fence for what another has written, unless a
 * barrier lies in between. */
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

/* Who carries what a thread had done at its last fence to where others find it. The thread could only hand
 * over all that it has done by now. */
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
