/* g2p_pictures.h - what a training leaves behind to look at, as SVG. Each returns a weft_status;
 * weft_file_message has the text. */
#ifndef G2P_PICTURES_H
#define G2P_PICTURES_H
#include "g2p_data.h"
#include "g2p_model.h"

/* losses [points], every so many updates; judged [epochs][2], PER and WER on dev after each epoch of
 * `updates`. */
typedef struct { int64_t points, every, epochs, updates; const double *losses, *judged; } history;
weft_status draw_history(const char *path, const history *h);
/* Which letters of a word each of its phones looks at. */
weft_status draw_attention(const char *path, const model *m, const phone_set *phones, const char *word);
/* n words (at most 16) as a batch in three layouts. */
weft_status draw_words(const char *path, const char *const *words, int n);
#endif
