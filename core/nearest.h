/* nearest.h - the name that a misspelt word most likely means. */
#ifndef WEFT_CORE_NEAREST_H
#define WEFT_CORE_NEAREST_H

/* Returns the name with the fewest edits from `word`, or NULL if none is near: at most half the letters
 * differ. name(i, of) returns the i-th name, and NULL after the last. */
const char *weft__nearest(const char *word, const char *(*name)(int i, const void *of), const void *of);
#endif
