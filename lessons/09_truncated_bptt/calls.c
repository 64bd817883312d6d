/* Lesson 9: the call of the student's function, see common/answer.h. Only the process
 * with the answer has its tensors; the check shares the numbers. */
#include "common/answer.h"
#include "lesson.h"

weft_state read_window(const window *in, weft_tensor **y)
{
    weft_state last = { 0 };
    CALL(read_window, in->steps, in->slots);
    ANSWER(read_window, last = answer(in, y));
    return last;
}
