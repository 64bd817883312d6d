/* Lesson 11: calls of the student's functions, see common/answer.h. Only the process
 * with the answer has its parameters; the check shares the numbers. */
#include "common/answer.h"
#include <math.h>
#include <string.h>
#include "known.h"
#include "lesson.h"

enum { MOST_ARRAYS = 8 };

double clip(int n, const int *size, double *const *gradient, double most)
{
    double *own[MOST_ARRAYS];
    CALL(clip, n, most);
    for (int k = 0; k < n && k < MOST_ARRAYS; k++)
        own[k] = call_writes("gradient[k]", gradient[k], size[k], sizeof **gradient);
    size = READS(size, n);
    double *const *all = call_reads("gradient", own, n, sizeof *own);
    RETURN(clip, answer(n, size, all, most));
}

void forget_bias(weft_module *lstm, int hidden, double value)
{
    CALL(forget_bias, hidden, value);
    ANSWER(forget_bias, answer(lstm, hidden, value));
}

/* ---- known runs: update may be called without the work, see known.h ---- */
/* Handles without memory: a weft function that reads one crashes, except these four. */
static struct {
    char *handles;
    double most, norm;
    enum { IDLE, BEGUN, BACKWARD, CLIPPED, STEPPED, OTHER } is;
} watched;
enum { MODULE = 16, OPTIM = 32, LOSS = 48, NORM = 64 };

static bool is_watched(const void *handle, int which, int from, int to)
{
    if (watched.is == IDLE)
        return false;
    bool next = handle == watched.handles + which && (int)watched.is == from;
    watched.is = next ? to : OTHER;
    return true;
}

void __wrap_weft_backward(weft_tensor *loss)
{
    if (!is_watched(loss, LOSS, BEGUN, BACKWARD))
        weft_backward(loss);
}

weft_tensor *__wrap_weft_clip_grad_norm(weft_module *m, double most, double p)
{
    if (!is_watched(m, MODULE, BACKWARD, CLIPPED))
        return weft_clip_grad_norm(m, most, p);
    if (most != watched.most || (p != 0 && p != 2))
        watched.is = OTHER;
    return (weft_tensor *)(watched.handles + NORM);
}

void __wrap_weft_optim_step(weft_optim *o)
{
    if (!is_watched(o, OPTIM, CLIPPED, STEPPED))
        weft_optim_step(o);
}

double __wrap_weft_item(weft_tensor *x)
{
    int is = watched.is == STEPPED ? STEPPED : CLIPPED;
    return is_watched(x, NORM, is, is) ? watched.norm : weft_item(x);
}

static void update_watched(void *norm)
{
    *(double *)norm = update((weft_module *)(watched.handles + MODULE),
                             (weft_optim *)(watched.handles + OPTIM),
                             (weft_tensor *)(watched.handles + LOSS), watched.most);
}

bool updates_as_known(double most, double norm)
{
    watched.handles = (char *)4096; /* an address that cannot be read */
    watched.most = most, watched.norm = norm, watched.is = BEGUN;
    double got = NAN;
    bool same = answer_survives(update_watched, &got) && watched.is == STEPPED &&
                memcmp(&got, &norm, sizeof got) == 0;
    watched.is = IDLE;
    return same;
}

double update(weft_module *m, weft_optim *o, weft_tensor *loss, double most)
{
    double norm = 0;
    CALL(update, most);
    ANSWER(update, norm = answer(m, o, loss, most));
    return norm;
}
