#!/usr/bin/env python3
"""torch_models.py - the models of the benchmarks in PyTorch, with weft's parameter names, and the formulas of weights and data.

Each model runs in every layout that PyTorch has for it: padded with masks, packed (recurrent layers) or nested (attention)."""
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

def formula(name, n):
    key = 0
    for c in name.encode():
        key = (key * 31 + c) % 2**64
    i = torch.arange(n, dtype=torch.int64)
    x = (i * 2654435761 + key % 65521 * 40503) % 2**31
    x = (1103515245 * x + 12345) % 2**31
    return (x >> 15).double() / 65536 - .5


def lengths(kind, batch, longest, seed=1):
    if kind == "triangle":
        return [longest - i % longest for i in range(batch)]
    if kind == "equal":
        return [longest] * batch
    low, x, out = max(1, longest // 8), seed, []
    for _ in range(batch):
        x = (1103515245 * x + 12345) % 2**31
        out.append(low + (x >> 8) % (longest - low + 1))
    return out


def padded(flat, lens, longest, fill=0):
    """Pads concatenated tokens [tokens, ..] to [B, T, ..]. `fill` is the padding value after each sequence."""
    out, at = flat.new_full((len(lens), longest) + flat.shape[1:], fill), 0
    for i, n in enumerate(lens):
        out[i, :n] = flat[at:at + n]
        at += n
    return out


def reals(name, *shape):
    n = 1
    for k in shape:
        n *= k
    return (2 * formula(name, n)).float().reshape(shape)


def set_weights(module, hidden):
    """Sets the weights and returns the module. A layer for all heads here is a layer for each head in weft."""
    with torch.no_grad():
        for name, p in module.named_parameters():
            part = next((w for w in ("query_layers", "key_layers") if w in name), None)
            names = [name.replace(part, f"{part}.{h}") for h in range(4)] if part else [name]
            p.copy_(torch.cat([2 / hidden**.5 * formula(n, p.numel() // len(names)) for n in names]).reshape(p.shape))
    return module


def run(layer, x, lens, state, packed):
    """Runs a recurrent layer on a padded tensor, packed inside or not. Returns (y padded, state)."""
    if not packed:
        return layer(x, state)
    y, state = layer(pack_padded_sequence(x, lens, batch_first=True, enforce_sorted=False), state)
    return pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0], state


class Recurrent(nn.Module):
    """Recurrent layers alone, or a classifier: embedding, recurrent layers, linear head summed over time."""

    def __init__(self, row):
        super().__init__()
        self.cell, self.classifier = "gru" if row["case"] == "gru" else "lstm", row["case"] in ("net", "slow_pack")
        if self.classifier:
            self.embedding = nn.Embedding(10, row["I"], padding_idx=0)
        setattr(self, self.cell, {"gru": nn.GRU, "lstm": nn.LSTM}[self.cell](row["I"], row["H"], row["layers"], batch_first=True, bidirectional=row["bidirectional"]))
        if self.classifier:
            self.linear = nn.Linear(row["H"], 2)

    def forward(self, x, lens, keep, packed):
        layer = getattr(self, self.cell)
        if self.classifier:
            x = self.embedding(x)
        y = run(layer, x, lens, None, packed)[0]
        return (self.linear(y) * keep).sum(1) if self.classifier else y * keep


class Scan(torch.autograd.Function):
    """y[t] = a[t] * y[t - 1] + b[t] over [T, B, H], one operator a step, into one tensor."""

    @staticmethod
    def forward(ctx, a, b):
        y = b.clone()
        for t in range(1, len(b)):
            y[t].addcmul_(a[t], y[t - 1])
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        a, y = ctx.saved_tensors
        g = dy.clone(memory_format=torch.contiguous_format)
        for t in range(len(g) - 2, -1, -1):
            g[t].addcmul_(a[t + 1], g[t + 1])
        da = torch.zeros_like(a)
        torch.mul(g[1:], y[:-1], out=da[1:])
        return da, g


def scan_loop(a, b):
    y = [b[0]]
    for t in range(1, len(b)):
        y.append(torch.addcmul(b[t], a[t], y[-1]))
    return torch.stack(y)


class MinGRU(nn.Module):
    """Feng et al. 2024: returns the factors 1 - z and terms z * (W_h x + b_h) of the scan."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.weight_ih_l0, self.bias_ih_l0 = nn.Parameter(torch.empty(2 * hidden, inputs)), nn.Parameter(torch.empty(2 * hidden))

    def forward(self, x):
        z, h = nn.functional.linear(x, self.weight_ih_l0, self.bias_ih_l0).chunk(2, -1)
        z = z.sigmoid()
        return 1 - z, z * h


class MultiHead(nn.Module):
    """The parameters and arithmetic of torch.nn.MultiheadAttention, with scaled_dot_product_attention."""

    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.in_proj_weight, self.in_proj_bias = nn.Parameter(torch.empty(3 * d, d)), nn.Parameter(torch.empty(3 * d))
        self.out_proj = nn.Linear(d, d)

    def attend(self, qkv, mask=None):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(-3, -2) for part in qkv.chunk(3, -1))
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(-3, -2).flatten(-2)

    def forward(self, x, mask=None, lens=None):
        """x: padded with a mask; nested; or concatenated tokens with lens, which runs attention sequence by sequence."""
        qkv = nn.functional.linear(x, self.in_proj_weight, self.in_proj_bias)
        y = self.attend(qkv, mask) if lens is None else torch.cat([self.attend(part[None])[0] for part in qkv.split(lens)])
        return self.out_proj(y)


class General(nn.Module):
    """Attention with scores q . (weight m), Luong et al. 2015."""

    def __init__(self, dq, dm):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dq, dm))

    def forward(self, q, memory, forbidden):
        scores = ((q @ self.weight) @ memory.transpose(1, 2)).masked_fill(forbidden[:, None], -torch.inf)
        return scores.softmax(-1) @ memory


class G2P(nn.Module):
    """The demo's encoder-decoder: a bidirectional LSTM reads letters. An LSTM starts from its last states, attends to all letters and writes phones."""

    def __init__(self, embed, hidden, classes=40):
        super().__init__()
        self.letters, self.phones = nn.Embedding(26, embed), nn.Embedding(classes, embed)
        self.encoder = nn.LSTM(embed, hidden, 2, batch_first=True, bidirectional=True)
        self.decoder = nn.LSTM(embed, hidden, batch_first=True)
        self.bridge_h, self.bridge_c = nn.Linear(2 * hidden, hidden), nn.Linear(2 * hidden, hidden)
        self.attention = General(hidden, 2 * hidden)
        self.combine, self.output = nn.Linear(3 * hidden, hidden), nn.Linear(hidden, classes)

    def forward(self, letter, before, read, write, forbidden, packed):
        memory, (h, c) = run(self.encoder, self.letters(letter), read, None, packed)
        first = tuple(torch.tanh(bridge(torch.cat([s[-2], s[-1]], 1)))[None] for bridge, s in ((self.bridge_h, h), (self.bridge_c, c)))
        y, _ = run(self.decoder, self.phones(before), write, first, packed)
        return self.output(torch.tanh(self.combine(torch.cat([y, self.attention(y, memory, forbidden)], 2))))


class GLU(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.fc1 = nn.Linear(n, 2 * m)

    def forward(self, x):
        a, b = self.fc1(x).chunk(2, -1)
        return a * torch.sigmoid(b)


class Attention(nn.Module):
    """Attention whose heads have separate queries and keys and share values. One product computes all heads, and their maps are averaged before
    the values, which is faster. Its weights are filled by head, because each head has named layers in weft."""

    def __init__(self, d, heads):
        super().__init__()
        self.heads, self.k = heads, d // heads
        self.query_layers, self.key_layers = nn.Linear(d, d), nn.Linear(d, d)
        self.value_layer, self.output_layer = nn.Linear(d, d // heads), nn.Linear(d // heads, d)

    def forward(self, q, memory, forbidden):
        B, Tq, _ = q.shape
        Q = self.query_layers(q).view(B, Tq, self.heads, self.k).transpose(1, 2)
        K = self.key_layers(memory).view(B, memory.shape[1], self.heads, self.k).transpose(1, 2)
        scores = ((Q @ K.transpose(2, 3)) * self.k**-.5).masked_fill(forbidden[:, None], -1e9)
        return self.output_layer(scores.softmax(-1).mean(1) @ self.value_layer(memory))


class Gate(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.glu, self.add_norm = GLU(d, d), nn.ModuleDict({"norm": nn.LayerNorm(d)})

    def forward(self, x, skip):
        return self.add_norm["norm"](self.glu(x) + skip)


class Resample(nn.Module):
    """Interpolates n numbers to m, scales each, and normalises."""

    def __init__(self, n, m):
        super().__init__()
        self.mask, self.norm, line = nn.Parameter(torch.zeros(m)), nn.LayerNorm(m), torch.zeros(n, m)
        for j in range(m):
            place = j * (n - 1) / (m - 1) if m > 1 else 0
            line[int(place), j] += 1 - (place - int(place))
            if int(place) + 1 < n:
                line[int(place) + 1, j] += place - int(place)
        self.register_buffer("line", line, persistent=False)

    def forward(self, x):
        return self.norm(x @ self.line * (2 * torch.sigmoid(self.mask)))


class GRN(nn.Module):
    """A gated residual network. The skip connection is a Resample or a linear projection."""

    def __init__(self, n, m, hidden, context=0, projected=False):
        super().__init__()
        self.fc1, self.fc2, self.glu1, self.norm = nn.Linear(n, hidden), nn.Linear(hidden, m), GLU(m, m), nn.LayerNorm(m)
        self.fc3 = nn.Linear(context, hidden, bias=False) if context else None
        skip = nn.Linear(n, m) if projected else Resample(n, m) if n != m else nn.Identity()
        self.skip = "project" if projected else "resample"
        setattr(self, self.skip, skip)

    def forward(self, x, context=None):
        h = self.fc1(x) if self.fc3 is None else self.fc1(x) + self.fc3(context)[:, None]
        return self.norm(self.glu1(self.fc2(nn.functional.elu(h))) + getattr(self, self.skip)(x))


class Selection(nn.Module):
    def __init__(self, features, d, scaled=8):
        super().__init__()
        self.prescalers = nn.ModuleList(nn.Linear(1, scaled) for _ in range(features))
        self.single_grn = nn.ModuleList(GRN(scaled, d, min(scaled, d)) for _ in range(features))
        self.flattened_grn = GRN(features * scaled, features, min(features, d), d)

    def forward(self, x, context):
        each = [scale(x[..., i:i + 1]) for i, scale in enumerate(self.prescalers)]
        share = self.flattened_grn(torch.cat(each, -1), context).softmax(-1)
        return sum(share[..., i:i + 1] * grn(each[i]) for i, grn in enumerate(self.single_grn))


class TFT(nn.Module):
    """A Temporal Fusion Transformer for series of equal length without static features."""

    def __init__(self, past, future, d, heads=4):
        super().__init__()
        self.d, self.enc_vs, self.dec_vs = d, Selection(past, d), Selection(future, d)
        self.static_ctxt_vs, self.static_ctxt_enrichment, self.lstm_init_hidden, self.lstm_init_cell, self.attn_grn = (GRN(d, d, d) for _ in range(5))
        self.static_enrichment = GRN(d, d, d, d)
        self.enc_lstm, self.dec_lstm = (nn.LSTM(d, d, batch_first=True) for _ in range(2))
        self.enc_gate1, self.attn_gate1, self.attn_gate2 = (GLU(d, d) for _ in range(3))
        self.enc_norm1, self.attn_norm1, self.attn_norm2 = (nn.ModuleDict({"norm": nn.LayerNorm(d)}) for _ in range(3))
        self.attn, self.output_layer = Attention(d, heads), nn.Linear(d, 1)

    def forward(self, past, future):
        zeros = past.new_zeros(past.shape[0], self.d)
        vs, enrichment, *first = (g(zeros) for g in (self.static_ctxt_vs, self.static_ctxt_enrichment, self.lstm_init_hidden, self.lstm_init_cell))
        past, future = self.enc_vs(past, vs), self.dec_vs(future, vs)
        e, state = self.enc_lstm(past, tuple(x[None] for x in first))
        d, _ = self.dec_lstm(future, state)
        ze, zd = (self.enc_norm1["norm"](self.enc_gate1(y) + x) for y, x in ((e, past), (d, future)))
        ae, ad = (self.static_enrichment(z, enrichment) for z in (ze, zd))
        causal = torch.ones(ad.shape[1], ad.shape[1], dtype=torch.bool, device=ad.device).triu()
        forbidden = torch.cat([causal.new_zeros(ad.shape[1], ae.shape[1]), causal], 1)[None]
        u = self.attn_norm1["norm"](self.attn_gate1(self.attn(ad, torch.cat([ae, ad], 1), forbidden)) + ad)
        return self.output_layer(self.attn_norm2["norm"](self.attn_gate2(self.attn_grn(u)) + zd))


class TransformerLSTM(nn.Module):
    def __init__(self, past, future, d, layers, heads=4, blocks=2):
        super().__init__()
        self.encoder_grn, self.decoder_grn = GRN(past, d, d, projected=True), GRN(future, d, d, projected=True)
        self.encoder, self.decoder = (nn.LSTM(d, d, layers, batch_first=True) for _ in range(2))
        self.transformer_blocks = nn.ModuleList(nn.ModuleDict({
            "encoder_self_attention": Attention(d, heads), "cross_attention": Attention(d, heads),
            "encoder_gate_add_norm": Gate(d), "decoder_gate_add_norm": Gate(d)}) for _ in range(blocks))
        self.output_head = nn.Linear(d, 1)

    def forward(self, past, future, past_lens, future_lens, packed):
        ge, gd = self.encoder_grn(past), self.decoder_grn(future)
        e, state = run(self.encoder, ge, past_lens, None, packed)
        d, _ = run(self.decoder, gd, future_lens, state, packed)
        e, d, Te, Td = e + ge, d + gd, past.shape[1], future.shape[1]
        pads = torch.arange(Te, device=past.device)[None] >= past_lens[:, None].to(past.device)
        causal = torch.ones(Td, Td, dtype=torch.bool, device=past.device).triu()
        both = torch.cat([pads[:, None].expand(-1, Td, -1), causal[None].expand(past.shape[0], -1, -1)], 2)
        for b in self.transformer_blocks:
            e = b["encoder_gate_add_norm"](b["encoder_self_attention"](e, e, pads[:, None].expand(-1, Te, -1)), e)
            d = b["decoder_gate_add_norm"](b["cross_attention"](d, torch.cat([e, d], 1), both), d)
        return self.output_head(d)
