/* Lesson 11, solved. */
#include <math.h>
#include "lesson.h"

double clip(int n, const int *size, double *const *gradient, double most)
{
#ifdef START
    (void)n, (void)size, (void)gradient, (void)most;
    return 0;               /* the norm; scale the numbers if it is above most */
#else
    double squares = 0;
    for (int k = 0; k < n; k++)
        for (int j = 0; j < size[k]; j++)
            squares += gradient[k][j] * gradient[k][j];
    double norm = sqrt(squares);
    for (int k = 0; k < n && norm > most; k++)
        for (int j = 0; j < size[k]; j++)
            gradient[k][j] *= most / norm;
    return norm;
#endif
}

void forget_bias(weft_module *lstm, int hidden, double value)
{
#ifdef START
    weft_tensor *b = weft_find_parameter(lstm, "bias_ih_l0");
    (void)b, (void)hidden, (void)value; /* read, change rows, assign */
#else
    weft_tensor *b[2] = { weft_find_parameter(lstm, "bias_ih_l0"),
                          weft_find_parameter(lstm, "bias_hh_l0") };
    for (int k = 0; k < 2; k++) {
        double x[4 * hidden];
        weft_read(b[k], x, sizeof x);
        for (int j = hidden; j < 2 * hidden; j++)
            x[j] = k == 0 ? value : 0;
        weft_assign_values(b[k], x, 4 * hidden);
    }
#endif
}

double update(weft_module *m, weft_optim *o, weft_tensor *loss, double most)
{
#ifdef START
    (void)m, (void)o, (void)loss, (void)most;
    return 0;               /* which three calls, in which order? */
#else
    weft_backward(loss);
    double norm = weft_item(weft_clip_grad_norm(m, most, 2));
    weft_optim_step(o);
    return norm;
#endif
}
