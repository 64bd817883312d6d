"""lstm.py - the README's network in Python; predicts the successor of each token."""
from weft import *

w = weft_open(weft_opts(seed=1))
m = weft_module_new(w, "net")
embed = weft_embedding_new(m, "embed", weft_embedding_opts(rows=10, columns=16))
lstm = weft_lstm_new(m, "lstm", weft_rnn_opts(input=16, hidden=32, bidirectional=True))
out = weft_linear_new(m, "out", weft_linear_opts(**{"in": 64, "out": 10}))
adam = weft_adam_new(m, None)

of = lengths(3, 1, 0, 5)
tokens, successors = ints(1, 2, 3, 7, 4, 5, 6, 7, 8), ints(2, 3, 4, 8, 5, 6, 7, 8, 9)
for step in range(100):
    x = weft_embedding_run(embed, weft_ragged_ints(w, tokens, of))
    y = weft_linear_run(out, weft_rnn_run(lstm, x, weft_state()).y)
    right = weft_ragged_ints(w, successors, of)
    loss = weft_mean_loss(weft_cross_entropy(y, right, None))
    weft_backward(loss)
    weft_clip_grad_norm(m, 1, 0)
    weft_optim_step(adam)
    if step % 20 == 0:
        print(f"{step:3d}  {weft_item(loss):.4f}")
    weft_clear(w)
weft_close(w)
