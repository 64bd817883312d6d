"""export.py BUILD [MODEL] - checks exported models with onnx.checker and onnxruntime, on batches with other lengths and another number of
sequences than the traced one. BUILD/tests/interchange/export writes the models, inputs and expected outputs. Tested with onnx 1.23.2 and
onnxruntime 1.32."""
import glob
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime

BOUND = 1e-5


def records(path):
    inputs, outputs, data, at = {}, {}, open(path, 'rb').read(), 0
    while at < len(data):
        end = data.index(b'\n', at)
        kind, name, type_, rank, *size = data[at:end].decode().split()
        size, dtype = [int(k) for k in size[:int(rank)]], np.dtype('f4' if type_ == 'f' else 'i4')
        count = int(np.prod(size, dtype=np.int64))
        values = np.frombuffer(data, dtype, count, end + 1).reshape(size)
        (inputs if kind == 'in' else outputs)[name] = values.astype(np.int64) if type_ == 'i' else values
        at = end + 1 + 4 * count
    return inputs, outputs


def difference(got, want):
    """The largest difference relative to max(1, size), where there is data; padding must be finite."""
    if got.ndim >= 2 and want.ndim == 3 and got.shape[1] == want.shape[1]:       # ragged: rank, and longer padding
        want = want.reshape(want.shape[:2] + got.shape[2:])
        longer = np.full((got.shape[0] - want.shape[0], *want.shape[1:]), np.nan if want.dtype.kind == 'f' else 0, want.dtype)
        want = np.concatenate([want, longer])
    if got.shape != want.shape:
        raise ValueError(f'shape {got.shape}, expected {want.shape}')
    if want.dtype.kind == 'f' and not np.isfinite(got[np.isnan(want)]).all():
        raise ValueError('padding is not finite')
    good = ~np.isnan(want) if want.dtype.kind == 'f' else np.ones(want.shape, bool)
    same = (got == want) | ~good                 # equal infinities, too
    d = np.abs(got.astype('f8') - want.astype('f8')) / np.maximum(1, np.abs(want))
    return float(np.max(np.where(same, 0, d), initial=0))


def check(folder, name):
    path = f'{folder}/{name}.onnx'
    onnx.checker.check_model(onnx.load(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options)
    names, worst = [o.name for o in session.get_outputs()], 0.
    for batch in sorted(glob.glob(f'{folder}/{name}.[0-9]')):
        inputs, outputs = records(batch)
        used = {i.name for i in session.get_inputs()}
        if used - set(inputs):
            raise ValueError(f'inputs {used - set(inputs)} are not expected')
        for o, got in zip(names, session.run(names, {k: v for k, v in inputs.items() if k in used})):
            d = difference(got, outputs[o])
            if not d <= BOUND:
                raise ValueError(f'{o} of batch {batch[-1]} differs by {d:.3g}')
            worst = max(worst, d)
    return worst


def main():
    program, failed, all_ = f'{sys.argv[1]}/tests/interchange/export', 0, 0
    with tempfile.TemporaryDirectory() as folder:
        failed += subprocess.run([program, folder, *sys.argv[2:]]).returncode
        for path in sorted(glob.glob(f'{folder}/*.onnx'), key=os.path.getmtime):
            name = os.path.basename(path)[:-5]
            all_ += 1
            try:
                print(f'{name:20} {check(folder, name):.2g}')
            except Exception as e:               # of any package; the next model is checked, too
                failed += 1
                print(f'{name:20} FAILED: {str(e)[:600]}')
    print(f'{all_} models, {failed} failures')
    return failed > 0


sys.exit(main())
