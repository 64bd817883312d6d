/* ragged.c - converts one batch of sequences of different lengths to all layouts and back. */
#include <string.h>
#include "weft_lab.h"
#include "weft_op.h"

int main(void)
{
    weft *w = weft_open(NULL);
    const int32_t len[] = { 3, 5, 2, 4 };
    weft_lengths lengths = { .n = 4, .len = len };
    /* sequence 1: 11 12 13 - -; sequence 2: 21 22 ..; -1 is padding */
    weft_real padded[4 * 5], back[4 * 5];
    for (int s = 0; s < 4; s++)
        for (int t = 0; t < 5; t++)
            padded[5 * s + t] = t < len[s] ? (weft_real)(10 * (s + 1) + t + 1) : -1;
    weft_tensor *x = weft_reals(w, padded, WEFT_SHAPE(4, 5));

    weft_tensor *packed = weft_pack_padded_sequence(x, &lengths, WEFT_ALIGN_LEFT);
    puts("packed, PyTorch's PackedSequence: time-major, the longest first");
    weft_print_layout(stdout, packed);
    weft_print(stdout, packed);

    weft_tensor *concat = weft_to_layout(packed, WEFT_CONCAT);
    puts("\nconcatenated, sequence by sequence");
    weft_print_layout(stdout, concat);
    weft_print(stdout, concat);

    int32_t row[4], column[4];
    int64_t rows;
    if (weft_first_fit(&lengths, 7, row, column, &rows) == WEFT_OK) {
        weft_tensor *folded = weft_to_rows(packed, &(weft_placement){ rows, 7, row, column });
        printf("\nrows of 7: several whole sequences in each, %lld rows\n", (long long)rows);
        weft_print_layout(stdout, folded);
        weft_print(stdout, folded);
    }

    puts("\nthe sum of each sequence, whatever its layout");
    weft_print(stdout, weft_pool(packed, WEFT_POOL_SUM));

    weft_read(weft_pad_packed_sequence(concat, 5, -1, WEFT_ALIGN_LEFT), back, sizeof back);
    bool same = weft_ok(w) && memcmp(padded, back, sizeof back) == 0;
    printf("\npadded -> packed -> concatenated -> padded: %s\n", same ? "the same bits" : "not the same");
    if (!weft_ok(w))
        fprintf(stderr, "ragged: %s\n", weft_error_message(w));
    weft_close(w);
    return !same;
}
