/* first.c - two tensors, an operator, gradients. */
#include "weft.h"

int main(void)
{
    weft *w = weft_open(NULL);
    weft_module *m = weft_module_new(w, "first");
    weft_tensor *weight =
        weft_parameter(m, "weight", WEFT_SHAPE(3, 2), (weft_init){ WEFT_INIT_UNIFORM, -1, 1 });
    weft_tensor *x = weft_reals(w, (weft_real[]){ 1, 2, 3, 4, 5, 6 }, WEFT_SHAPE(2, 3));
    weft_tensor *y = weft_tanh(weft_matmul(x, weight));           /* [2, 3] [3, 2] -> [2, 2] */
    weft_backward(weft_sum_all(y));
    weft_print(stdout, y);
    weft_print(stdout, weft_grad(weight));
    /* one check at the end, because errors are sticky */
    int failed = !weft_ok(w);
    if (failed)
        fprintf(stderr, "first: %s\n", weft_error_message(w));
    weft_close(w);
    return failed;
}
