/* slow_pack_peer.h - PyTorch, in a process of its own, does a run whenever it is asked to
 * (bench/peers/slow_pack.py). */
#ifndef SLOW_PACK_PEER_H
#define SLOW_PACK_PEER_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct { FILE *to, *from; pid_t pid; char who[100]; } peer;            /* to NULL: there is none */
typedef struct { double ms, loss, norm; } run;                                  /* ms NaN: it could not */

/* Starts the script by the Python that WEFT_PYTHON names, else python3; none if that has no torch, or not
 * for the device. */
peer peer_start(const char *script, int threads, const char *device);
/* One run of SETUP ('A' or 'B'). */
run  peer_run(peer *p, char setup, int64_t batch, int64_t T, bool packed, bool train);
void peer_end(peer *p);
#endif
