/* Lesson 6: calls of the student's functions, see common/answer.h. Only the process
 * with the answer has its tensors; the check shares the numbers. */
#include "common/answer.h"
#include "lesson.h"

batch_size count(int n, const int32_t *len)
{
    batch_size size = { 0, 0 };
    call_begins("count");
    len = READS(len, n);
    ANSWER(count, size = answer(n, len));
    share(&size, sizeof size);
    return size;
}

weft_rnn_out run_padded(weft_rnn *lstm, weft_tensor *x, weft_tensor *mask, bool reverse)
{
    call_begins("run_padded");
    weft_rnn_out out = { 0 };
    ANSWER(run_padded, out = answer(lstm, x, mask, reverse));
    return out;
}

weft_tensor *mean_square(weft_tensor *y, weft_tensor *mask)
{
    weft_tensor *mean = NULL;
    call_begins("mean_square");
    ANSWER(mean_square, mean = answer(y, mask));
    return mean;
}
