/* Lesson 6: calls of the student's functions, see common/answer.h. Only the process
 * with the answer has its tensors; the check shares the numbers. */
#include "common/answer.h"
#include "lesson.h"

batch_size count(int n, const int32_t *len)
{
    batch_size size = { 0, 0 };
    CALL(count, n);
    len = READS(len, n);
    ANSWER(count, size = answer(n, len));
    share(&size, sizeof size);
    return size;
}

weft_rnn_out run_padded(weft_rnn *lstm, weft_tensor *x, weft_tensor *mask, bool reverse)
{
    weft_rnn_out out = { 0 };
    int n = (int)weft_size(x, 0), T = (int)weft_size(x, 1);
    CALL(run_padded, n, T, reverse);
    ANSWER(run_padded, out = answer(lstm, x, mask, reverse));
    return out;
}

weft_tensor *mean_square(weft_tensor *y, weft_tensor *mask)
{
    weft_tensor *mean = NULL;
    int n = (int)weft_size(y, 0), T = (int)weft_size(y, 1);
    CALL(mean_square, n, T);
    ANSWER(mean_square, mean = answer(y, mask));
    return mean;
}
