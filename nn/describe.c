/* describe.c - texts kept with a module: what its numbers mean, beyond their names and shapes.
 *
 * A GRU and an LSTM of suitable widths have parameters of the same names and shapes; only a text tells them
 * apart. Checkpoints save these texts beside the parameters and refuse a file whose texts differ. The list is
 * kept in order of the keys, so that a file does not depend on the order in which a layer says them. */
#include <string.h>
#include "nn/nn.h"

void weft__describe(weft_module *m, const char *key, const char *value)
{
    if (!m || !m->w)
        return;
    weft__note **at = &m->notes, *note;
    if (strlen(key) >= sizeof note->key || strlen(value) >= sizeof note->value) {
        weft__fail(m->w, WEFT_EARG, "describe: \"%s\" = \"%s\" is too long", key, value);
        return;
    }
    while (*at && strcmp((*at)->key, key) < 0)
        at = &(*at)->next;
    if (*at && !strcmp((*at)->key, key)) {
        note = *at;
    } else {
        note = weft__own(m->w, sizeof *note, NULL, NULL);
        if (!note)
            return;
        note->next = *at;
        *at = note;
        memcpy(note->key, key, strlen(key) + 1);
    }
    memcpy(note->value, value, strlen(value) + 1);
}
