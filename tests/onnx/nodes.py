#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The official node tests of ONNX, through the importer.

    nodes.py ONNX_RUN DEVICE [PATTERN]     compares with nodes.txt, which has the names of those that pass
    nodes.py ONNX_RUN DEVICE --update      writes nodes.txt

Wants the Python package onnx. A test is of one node, with inputs and outputs: those of numbers of up to 64 bits, without strings and random
numbers. Where a node cannot be built because a shape is fed, small whole numbers are given as initializers. Of a sequence each tensor is an
input or an output of its own, put together and taken apart by nodes; an optional value is there or not."""
import fnmatch, os, subprocess, sys, tempfile
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

HERE = os.path.dirname(os.path.abspath(__file__))
RANDOM = {'Bernoulli', 'RandomNormal', 'RandomNormalLike', 'RandomUniform', 'RandomUniformLike', 'Multinomial'}


def as_array(a):
    return numpy_helper.to_array(a) if isinstance(a, onnx.TensorProto) else np.asarray(a)


def as_fed(a):
    """f32 or i32, as the importer has them."""
    a = as_array(a)
    if a.dtype.kind == 'f' or a.dtype.name == 'bfloat16':
        return a.astype(np.float32)
    if a.dtype.kind == 'b' or a.dtype.itemsize < 4:
        return a.astype(np.int32)
    return np.clip(a.astype(np.float64), -2.0**31, 2.0**31 - 1).astype(np.int32)


def element_of(kind):
    """The type of the numbers in it."""
    which = kind.WhichOneof('value')
    return kind.tensor_type.elem_type if which == 'tensor_type' else element_of(getattr(kind, which).elem_type)


def of_tensors(model, inputs, outputs):
    """The same with tensors alone as inputs and outputs."""
    of = onnx.ModelProto()
    of.CopyFrom(model)
    graph, before, behind, fed, told = of.graph, [], [], [], []
    del graph.input[:], graph.output[:]

    def tensor(array, name, values, list_of):
        values.append(onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(as_array(array).dtype), as_array(array).shape))
        list_of.append(array)

    for value, array in zip(model.graph.input, inputs):
        if array is None:
            before.append(onnx.helper.make_node('Optional', [], [value.name], type=value.type.optional_type.elem_type))
        elif isinstance(array, list):
            names = [f'{value.name}_{i}' for i in range(len(array))]
            for name, one in zip(names, array):
                tensor(one, name, graph.input, fed)
            before.append(onnx.helper.make_node('SequenceConstruct' if names else 'SequenceEmpty', names, [value.name]))
        else:
            graph.input.append(value)
            fed.append(array)
    for value, array in zip(model.graph.output, outputs):
        if isinstance(array, list):
            name = f'{value.name}_n'
            behind.append(onnx.helper.make_node('SequenceLength', [value.name], [name]))
            tensor(np.array(len(array), np.int64), name, graph.output, told)
            for i, one in enumerate(array):
                name = f'{value.name}_{i}'
                behind.append(onnx.helper.make_node('Constant', [], [name + '_at'], value_int=i))
                behind.append(onnx.helper.make_node('SequenceAt', [value.name, name + '_at'], [name]))
                tensor(one, name, graph.output, told)
        else:
            graph.output.append(value)
            told.append(array)
    nodes = list(graph.node)
    del graph.node[:]
    graph.node.extend(before + nodes + behind)
    return of, fed, told


def eligible(case):
    """None, or why it is not."""
    for node in case.model.graph.node:
        if node.op_type in RANDOM:
            return 'random numbers'
    for domain in case.model.opset_import:
        if domain.domain not in ('', 'ai.onnx'):
            return 'another domain'
    for value in list(case.model.graph.input) + list(case.model.graph.output):
        kind = element_of(value.type)
        if kind not in (1, 2, 3, 6, 7, 9, 10, 11, 16):
            return 'type ' + onnx.TensorProto.DataType.Name(kind)
    return None


class Runner:
    def __init__(self, tool, device):
        self.process = None
        self.command = [tool, device]

    def run(self, model, prefix):
        if not self.process or self.process.poll() is not None:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(f'{model} {prefix}\n')
        self.process.stdin.flush()
        line = self.process.stdout.readline().strip()
        return line or 'no it ended'


def close_enough(got, wanted, case):
    if got.shape != wanted.shape:
        return f'shape {got.shape}, not {wanted.shape}'
    wide = np.asarray(wanted).astype(np.float64)
    rtol, atol = max(case.rtol, 1e-4), max(case.atol, 1e-6)
    if wanted.dtype.itemsize == 2 and (wanted.dtype.kind == 'f' or wanted.dtype.name == 'bfloat16'):
        rtol, atol = max(rtol, 1e-2), max(atol, 1e-3)
    ok = np.isclose(got.astype(np.float64), wide, rtol=rtol, atol=atol, equal_nan=True)
    return None if ok.all() else f'{(~ok).sum()} of {ok.size} differ, the first {got.reshape(-1)[~ok.reshape(-1)][0]} is not {wide.reshape(-1)[~ok.reshape(-1)][0]}'


def attempt(runner, folder, model, inputs, outputs, case):
    path, prefix = os.path.join(folder, 'm.onnx'), os.path.join(folder, 'v')
    with open(path, 'wb') as file:
        file.write(model.SerializeToString())
    for i, array in enumerate(inputs):
        np.save(f'{prefix}.in{i}.npy', as_fed(array))
    said = runner.run(path, prefix)
    if said != 'ok':
        return said
    for i, wanted in enumerate(outputs):
        why = close_enough(np.load(f'{prefix}.out{i}.npy'), as_array(wanted), case)
        if why:
            return 'WRONG ' + why
    return 'ok'


def known(model, inputs, which):
    """The same model with some inputs as initializers."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    left, arrays = [], []
    for value, array in zip(model.graph.input, inputs):
        if value.name in which:
            fixed.graph.initializer.append(numpy_helper.from_array(as_array(array), value.name))
        else:
            left.append(value)
            arrays.append(array)
    del fixed.graph.input[:]
    fixed.graph.input.extend(left)
    return fixed, arrays


def judge(runner, folder, case):
    whole, inputs, outputs = of_tensors(case.model, *case.data_sets[0])
    names = [v.name for v in whole.graph.input]
    said = attempt(runner, folder, whole, inputs, outputs, case)
    if said.startswith('no') and 'must be known' in said:
        small = [n for n, a in zip(names, inputs) if as_array(a).dtype.kind in 'iub' and as_array(a).size <= 4096]
        numbers = [n for n, a in zip(names, inputs) if as_array(a).size <= 16]
        for which in (small, small + [n for n in numbers if n not in small and n != names[0]], names):
            model, left = known(whole, inputs, set(which))
            again = attempt(runner, folder, model, left, outputs, case)
            if again == 'ok' or again.startswith('WRONG'):
                return again
    return said


def main():
    tool, device = sys.argv[1:3]
    pattern = sys.argv[3] if len(sys.argv) > 3 and sys.argv[3] != '--update' else '*'
    runner, passed, failed, left = Runner(tool, device), [], [], {}
    with tempfile.TemporaryDirectory() as folder:
        for case in sorted(collect_testcases(None), key=lambda c: c.name):
            if not fnmatch.fnmatch(case.name, pattern):
                continue
            why = eligible(case)
            if why:
                left[why] = left.get(why, 0) + 1
                continue
            try:
                said = judge(runner, folder, case)
            except Exception as error:  # a test of the tests' own
                said = f'no {type(error).__name__}: {error}'
            if said == 'ok':
                passed.append(case.name)
            else:
                failed.append((case.name, said))
                print(f'{case.name}: {said[:300]}')
    n = len(passed) + len(failed)
    wrong = [name for name, said in failed if said.startswith('WRONG')]
    print(f'{len(passed)} of {n} pass ({100 * len(passed) / max(n, 1):.1f} %), {len(wrong)} wrong; not looked at: '
          + ', '.join(f'{count} {why}' for why, count in sorted(left.items())))
    listed = os.path.join(HERE, 'nodes.txt')
    if '--update' in sys.argv:
        with open(listed, 'w') as file:
            file.write(f'# The node tests of onnx {onnx.__version__} that pass: {len(passed)} of {n} (tests/onnx/nodes.py)\n')
            file.writelines(name + '\n' for name in passed)
        return 0
    claimed = {line.strip() for line in open(listed) if line[0] != '#'} if os.path.exists(listed) else set()
    lost = sorted(name for name, _ in failed if name in claimed)
    for name in lost:
        print('claimed by nodes.txt and does not pass:', name)
    return 1 if lost or wrong else 0


if __name__ == '__main__':
    sys.exit(main())
