"""linear.py - writes linear.json: linear recurrent layers as loops of PyTorch in double, with its gradients.
Needs torch. Inputs, losses and probes are those of recurrent.json, see its "how"."""
import json
import math

import torch
from torch.nn.functional import softplus

torch.set_default_dtype(torch.float64)
BLOCKS = {'min_gru': 2, 'min_lstm': 3, 'rg_lru': 1, 'qrnn': 3}


def u(s, *shape, by=1.0):
    k = torch.arange(math.prod(shape))
    return (((7 * k * k + (6 * s + 31) * k + 57 * s + 11) % 1009 / 504.5 - 1) / by).reshape(shape)


def probe(g):
    g = torch.zeros(0) if g is None else g.flatten()
    return [g.norm().item(), (g * torch.sin(torch.arange(len(g)) + 1.0)).sum().item()]


def steps(kind, x, w, h, c, window):
    """Runs one direction over x [T, F], token by token. Returns the outputs and the last states."""
    H, out = len(h), []
    for t in range(len(x)):
        row = x[t]
        if kind == 'qrnn':
            past = c[H:].reshape(window - 1, -1) if window > 1 else []
            row = torch.cat([x[t], *(p[:x.shape[1]] for p in past)])
        s = (w['weight_ih'] @ row + w['bias_ih']).split(H)
        if kind == 'min_gru':
            z = s[0].sigmoid()
            h = (1 - z) * h + z * s[1]
        elif kind == 'min_lstm':
            f, i = s[0].sigmoid(), s[1].sigmoid()
            h = f / (f + i) * h + i / (f + i) * s[2]
        elif kind == 'rg_lru':
            r, i = (w['weight_gates'] @ s[0] + w['bias_gates']).sigmoid().split(H)
            a = torch.exp(-8 * softplus(w['decay']) * r)
            h = a * h + torch.sqrt(1 - a * a) * i * s[0]
        else:
            z, f, o = s[0].tanh(), s[1].sigmoid(), s[2].sigmoid()
            inner = f * c[:H] + (1 - f) * z
            h = o * inner
            if window > 1:
                wide = past.shape[1]
                newest = torch.cat([x[t], torch.zeros(wide - x.shape[1])])
                inner = torch.cat([inner, newest, past[:-1].flatten()])
            c = inner
        out.append(h)
    return (torch.stack(out) if out else torch.zeros(0, H)), h, c


def case(name, kind, F, H, layers, both, state, lengths, window=0):
    D = 1 + both
    wide = max(F, H * D if layers > 1 else 0)
    C = H + (window - 1) * wide if kind == 'qrnn' else 0
    params = []
    for l in range(layers):
        for d in range(D):
            fan = (H * D if l else F) * (window or 1)
            shapes = {'weight_ih': [BLOCKS[kind] * H, fan], 'bias_ih': [BLOCKS[kind] * H]}
            if kind == 'rg_lru':
                shapes |= {'decay': [H], 'weight_gates': [2 * H, H], 'bias_gates': [2 * H]}
            params += [(f'{n}_l{l}' + '_reverse' * d, s) for n, s in shapes.items()]
    value = {n: u(s, *shape, by=math.sqrt(H)).requires_grad_() for s, (n, shape) in enumerate(params)}
    x = [u(100 + b, T, F).requires_grad_() for b, T in enumerate(lengths)]
    n = len(lengths)
    h0 = u(200, layers * D, n, H) if state else torch.zeros(layers * D, n, H)
    c0 = u(201, layers * D, n, C) if state else torch.zeros(layers * D, n, C)
    h0.requires_grad_(), c0.requires_grad_()
    ys, hs, cs = [], [[] for _ in range(layers * D)], [[] for _ in range(layers * D)]
    for b in range(n):
        y = x[b]
        for l in range(layers):
            outs = []
            for d in range(D):
                w = {p.rsplit('_l', 1)[0]: v for p, v in value.items()
                     if p.rsplit('_l', 1)[1] == str(l) + '_reverse' * d}
                o, h, c = steps(kind, y.flip(0) if d else y, w, h0[l * D + d, b], c0[l * D + d, b], window)
                outs.append(o.flip(0) if d else o)
                hs[l * D + d].append(h), cs[l * D + d].append(c)
            y = torch.cat(outs, 1)
        ys.append(y)
    h_n, c_n = (torch.stack([torch.stack(r) for r in s]) for s in (hs, cs))
    J, B, O = (torch.arange(k).reshape(s) for k, s in ((layers * D, (-1, 1, 1)), (n, (-1, 1)), (max(H * D, C), (-1,))))
    loss = sum((y * torch.sin(1 + .5 * b + .7 * torch.arange(len(y))[:, None] + .9 * O[:H * D])).sum()
               for b, y in enumerate(ys))
    loss = loss + (h_n * torch.sin(2 + .3 * J + .5 * B + .9 * O[:H])).sum()
    loss = loss + (c_n * torch.sin(3 + .3 * J + .5 * B + .9 * O[:C])).sum()
    loss.backward()
    grads = {p: probe(v.grad) for p, v in value.items()}
    grads |= {f'x.{b}': probe(v.grad) for b, v in enumerate(x)}
    if state:
        grads |= {'h0': probe(h0.grad)} | ({'c0': probe(c0.grad)} if C else {})
    out = {'name': name, 'kind': kind, 'input': F, 'hidden': H, 'layers': layers, 'bidirectional': bool(both),
           'bias': True, 'proj': 0, 'window': window, 'width_of_c': C, 'initial_state': state, 'lengths': lengths, 'params': params,
           'output': [y.flatten().tolist() for y in ys], 'h_n': h_n.flatten().tolist(), 'loss': loss.item(),
           'gradient_probes': grads}
    return out | ({'c_n': c_n.flatten().tolist()} if C else {})


cases = [case(f'{kind}_{name}', kind, *rest, **({'window': window} if kind == 'qrnn' else {}))
         for kind in BLOCKS for name, window, *rest in (('1layer', 2, 3, 4, 1, 0, False, [3, 5, 1, 4]),
                                                        ('2layers_bi', 3, 3, 4, 2, 1, True, [3, 0, 5, 2]),
                                                        ('wide', 1, 5, 3, 1, 1, True, [1, 6]))]
with open('tests/golden/linear.json', 'w', encoding='utf-8') as f:
    json.dump({'how': 'tests/golden/linear.py wrote this file; see recurrent.json', 'cases': cases}, f)
    f.write('\n')
