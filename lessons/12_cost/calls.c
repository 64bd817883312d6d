/* Lesson 12: calls of the student's functions, see common/answer.h. */
#include "common/answer.h"
#include "lesson.h"

static double shared(double value)
{
    call_ends();
    share(&value, sizeof value);
    return value;
}

double lstm_flops(int I, int H, int B, int T)
{
    call_begins("lstm_flops");
    ANSWER(lstm_flops);
    return shared(answer ? answer(I, H, B, T) : 0);
}

double lstm_bytes(int I, int H, int B, int T)
{
    call_begins("lstm_bytes");
    ANSWER(lstm_bytes);
    return shared(answer ? answer(I, H, B, T) : 0);
}

double attention_flops(int d, int n, const int *len)
{
    call_begins("attention_flops");
    len = READS(len, n);
    ANSWER(attention_flops);
    return shared(answer ? answer(d, n, len) : 0);
}

int crossing(int d)
{
    call_begins("crossing");
    ANSWER(crossing);
    return (int)shared(answer ? answer(d) : 0);
}
