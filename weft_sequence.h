/* weft_sequence.h - for models of sequences beyond recurrent layers.
 *
 * Contents: scans and shifts, windows over tokens, positional encodings and RoPE, RMS norm,
 * convolutions, layers with a linear recurrence (minGRU, minLSTM, RG-LRU, QRNN), CTC, conditional
 * random fields. */
#ifndef WEFT_SEQUENCE_LEVEL_H
#define WEFT_SEQUENCE_LEVEL_H
#include "weft.h"
#include "autograd/api_scan.h"
#include "autograd/api_windows.h"
#include "nn/api_conv.h"
#include "nn/api_crf.h"
#include "rnn/api_ctc.h"
#include "rnn/api_linear_rnn.h"
#endif
