# SPDX-License-Identifier: Apache-2.0
"""recurrent.safetensors: lstm, gru and rnn in layers, both directions, with lengths; and the recurrent part alone, by cells."""
import torch
from golden import Golden
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

cases = Golden("recurrent")


def network(name, op, kind, T, N, F, H, lengths=None, state=False, inputs=None, cell={}, **attributes):
    """`cell`: what torch calls otherwise."""
    layers, both, first = attributes.get("layers", 1), attributes.get("bidirectional", 0), attributes.get("batch_first", 0)
    bias = attributes.pop("bias", True)
    with cases.case(name, op, inputs, **attributes) as c:
        x = c.input("x", torch.randn((N, T, F) if first else (T, N, F)))
        first_state = [c.input(k, torch.randn(layers * (1 + both), N, H)) for k in ("h0", "c0")[:2 if op == "lstm" else 1] if state]
        if lengths:
            lengths = c.input("lengths", torch.tensor(lengths))
        net = kind(F, H, layers, bias=bias, batch_first=bool(first), bidirectional=bool(both), **cell)
        for parameter in net._flat_weights_names:
            weight = c.input(parameter, torch.randn(getattr(net, parameter).shape) / 2)
            delattr(net, parameter)
            setattr(net, parameter, weight)
        net._flat_weights = [getattr(net, parameter) for parameter in net._flat_weights_names]
        given = (tuple(first_state) if op == "lstm" else first_state[0]) if state else None
        if lengths is not None:
            packed = pack_padded_sequence(x, lengths, batch_first=bool(first), enforce_sorted=False)
            y, _ = pad_packed_sequence(net(packed, given)[0], batch_first=bool(first), total_length=T)
        else:
            y, _ = net(x, given)
        c.expect("y", y)


def names(layers, both, bias=True):
    ends = [f"_l{k}{end}" for k in range(layers) for end in ("", "_reverse")[:1 + both]]
    return [part + end for end in ends for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")[:4 if bias else 2]]


LSTM, GRU, RNN = torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN
network("lstm", "lstm", LSTM, 3, 2, 3, 4, inputs=["x", None, None, None] + names(1, 0))
network("lstm_all", "lstm", LSTM, 4, 3, 3, 2, lengths=[4, 1, 3], state=True, layers=2, bidirectional=1)
network("lstm_batch_first", "lstm", LSTM, 3, 2, 3, 4, state=True, bias=False, inputs=["x", "h0", "c0", None] + names(1, 0, False),
        batch_first=1)
network("gru", "gru", GRU, 3, 2, 3, 4, inputs=["x", None, None] + names(1, 0))
network("gru_all", "gru", GRU, 4, 3, 3, 2, lengths=[4, 1, 3], state=True, layers=2, bidirectional=1)
network("rnn", "rnn", RNN, 3, 2, 3, 4, inputs=["x", None, None] + names(1, 0))
network("rnn_all", "rnn", RNN, 4, 3, 3, 2, lengths=[4, 1, 3], state=True, layers=2, bidirectional=1, relu=1,
        cell={"nonlinearity": "relu"})

# The recurrent part: a cell whose input weights are the identity.
CELLS = {"lstm": (0, 4, torch.nn.LSTMCell), "gru": (1, 3, torch.nn.GRUCell), "tanh": (2, 1, torch.nn.RNNCell)}
T, N, H = 4, 2, 3
for name, (number, gates, kind) in CELLS.items():
    lstm = name == "lstm"
    with cases.case(f"recurrence_{name}", "recurrence", ["z", "weight_hh", "bias_hh", "h0", "c0" if lstm else None],
                    cell=number, reverse=1) as c:
        z, weight = c.input("z", torch.randn(T, N, gates * H)), c.input("weight_hh", torch.randn(gates * H, H))
        bias, h = c.input("bias_hh", torch.randn(gates * H)), c.input("h0", torch.randn(N, H))
        if lstm:
            state = (h, c.input("c0", torch.randn(N, H)))
        cell = kind(gates * H, H)
        for parameter, value in {"weight_ih": torch.eye(gates * H), "bias_ih": torch.zeros(gates * H), "weight_hh": weight,
                                 "bias_hh": bias}.items():
            delattr(cell, parameter)
            setattr(cell, parameter, value)
        results = [None] * T
        for t in reversed(range(T)):
            if lstm:
                state = cell(z[t], state)
            results[t] = h = state[0] if lstm else cell(z[t], h)
        c.expect("y", torch.stack(results))
cases.write()
