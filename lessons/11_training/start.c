/* Lesson 11: training that does not blow up. Fill in three functions; lesson.h says
 * what they do. */
#include <math.h>
#include "lesson.h"

double clip(int n, const int *size, double *const *gradient, double most)
{
    (void)n, (void)size, (void)gradient, (void)most;
    return 0;               /* the norm before; then scale, if it must be */
}

void forget_bias(weft_module *lstm, int hidden, double value)
{
    weft_tensor *b = weft_find_parameter(lstm, "bias_ih_l0");
    (void)b, (void)hidden, (void)value; /* read, change rows, weft_assign_values */
}

double update(weft_module *m, weft_optim *o, weft_tensor *loss, double most)
{
    (void)m, (void)o, (void)loss, (void)most;
    return 0;               /* which three calls, in which order? */
}
