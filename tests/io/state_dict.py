"""state_dict.py FILE - writes the fixture tests/golden/state_dict.h5: a state dict of PyTorch as h5py writes it, with inputs and outputs.

The model: embedding -> two-layer bidirectional LSTM -> layer norm -> GRU -> linear. Needs torch and h5py."""
import sys

import h5py
import numpy as np
import torch
from torch import nn
from torch.nn.utils import rnn

LENGTHS = [4, 7, 1, 5]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 3)
        self.encoder = nn.LSTM(3, 4, num_layers=2, bidirectional=True)
        self.norm = nn.LayerNorm(8)
        self.decoder = nn.GRU(8, 5)
        self.out = nn.Linear(5, 2)
        self.register_buffer("mean", torch.tensor([0.5, -0.25]))
        self.register_buffer("num_batches_tracked", torch.tensor(7))     # int64: nothing that weft has

    def forward(self, tokens):
        """tokens: a list of sequences; the outputs [sum of lengths, 2], sequence by sequence."""
        x = rnn.pack_sequence([self.embed(t) for t in tokens], enforce_sorted=False)
        x = self.encoder(x)[0]
        x = self.decoder(x._replace(data=self.norm(x.data)))[0]
        y = rnn.unpack_sequence(x._replace(data=self.out(x.data) - self.mean))
        return torch.cat(y)


def split(tokens):
    return list(torch.from_numpy(np.asarray(tokens, dtype=np.int64)).split(LENGTHS))


def write(path):
    torch.manual_seed(3)
    net = Net()
    with torch.no_grad():
        net.norm.weight.add_(torch.randn(8))
    tokens = torch.randint(0, 11, (sum(LENGTHS),))
    with h5py.File(path, "w") as f:
        for name, value in net.state_dict().items():
            f[name] = value.numpy()
        f["test/tokens"] = tokens.numpy().astype(np.int32)
        f["test/lengths"] = np.array(LENGTHS, np.int32)
        f["test/rows"] = net.double()(split(tokens)).detach().numpy()     # float64 from the float32 weights


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    write(sys.argv[1])
