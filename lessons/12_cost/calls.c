/* Lesson 12: calls of the student's functions, see common/answer.h. */
#include "common/answer.h"
#include "lesson.h"

double lstm_flops(int I, int H, int B, int T)
{
    double flops = 0;
    CALL(lstm_flops, I, H, B, T);
    ANSWER(lstm_flops, flops = answer(I, H, B, T));
    return shared(flops);
}

double lstm_bytes(int I, int H, int B, int T)
{
    double bytes = 0;
    CALL(lstm_bytes, I, H, B, T);
    ANSWER(lstm_bytes, bytes = answer(I, H, B, T));
    return shared(bytes);
}

double attention_flops(int d, int n, const int *len)
{
    double flops = 0;
    CALL(attention_flops, d, n);
    len = READS(len, n);
    ANSWER(attention_flops, flops = answer(d, n, len));
    return shared(flops);
}

int crossing(int d)
{
    int length = 0;
    CALL(crossing, d);
    ANSWER(crossing, length = answer(d));
    return (int)shared(length);
}
