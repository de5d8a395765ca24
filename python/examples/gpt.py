# SPDX-License-Identifier: Apache-2.0
"""A small language model of PyTorch's layers, trained on a text, and a text that it goes on with."""
import torch
from torch import nn

import cleave

text = "the quick brown fox jumps over the lazy dog. " * 40
letters = sorted(set(text))
ids = torch.tensor([letters.index(c) for c in text])
T = 32


class GPT(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.token, self.place = nn.Embedding(len(letters), width), nn.Embedding(T, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks, self.head = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(width, len(letters))

    def forward(self, x):
        n = x.shape[1]
        mask = torch.triu(torch.full((n, n), float("-inf")), 1)
        h = self.token(x) + self.place(torch.arange(n))
        return self.head(self.blocks(h, mask=mask, is_causal=True)).transpose(1, 2)


windows = torch.stack([ids[i:i + T + 1] for i in range(0, len(ids) - T - 1, 7)])
batches = [(w[:, :-1], w[:, 1:]) for w in windows.split(32)]
model = cleave.compile(GPT(), loss="cross_entropy", optimizer="adamw", lr=3e-3)
model.fit(batches, epochs=8)
line = ids[:T]
for _ in range(40):
    line = torch.cat([line, model.predict(line[None, -T:])[0, :, -1].argmax()[None]])
print("".join(letters[i] for i in line))
