#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Language models as others have them, tiny: loss, logits and every gradient, in float64. GPT-2 and Llama by Hugging Face's transformers, an
LSTM as PyTorch's example word_language_model. Needs transformers beside PyTorch. The C side is language.c.

Sizes are chosen so that nothing is square by chance. `loss_10` is the loss of the same batch after ten steps of SGD at a rate of 0.1.
"""
import pathlib

import numpy
import torch
import torch.nn.functional as F
import transformers

from golden import Golden

cases = Golden("language")


def randomise(model):
    """Values that float32 holds; larger than first values, so that tokens differ in what they make probable."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            near_one = p.dim() == 1 and name.endswith("weight")
            p.copy_((0.3 * torch.randn(p.shape) + near_one).float().double())


def steps(model, loss_of, n=10, rate=0.1):
    optimizer = torch.optim.SGD(model.parameters(), rate)
    for _ in range(n):
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()
    return loss_of()


def case(name, model, inputs, labels, logits_of):
    model = model.double().eval()
    randomise(model)

    def loss_of():
        logits = logits_of(model)
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))

    with cases.case(name) as c:
        for key, tensor in inputs.items():
            c.put(key, tensor)
        c.put("labels", labels)
        for key, p in model.named_parameters():
            c.put(key, p)
            if not key.endswith(("key.bias", "k_proj.bias")):  # whose gradient is 0, or what turned places leave of it, but for rounding
                c.inputs[key] = p
        c.expect("loss", loss_of())
        c.expect("logits", logits_of(model))
    with cases.case(name + "_10") as c:
        c.put("loss", steps(model, loss_of).detach())


N, T, V = 2, 5, 11
tokens, labels = torch.randint(0, V, (N, T)), torch.randint(0, V, (N, T))

gpt2 = transformers.GPT2Config(vocab_size=V, n_positions=7, n_embd=12, n_head=3, n_layer=2, n_inner=20, attn_implementation="eager")
case("gpt2", transformers.GPT2LMHeadModel(gpt2), {"tokens": tokens}, labels, lambda m: m(tokens).logits)


def llama(name, kind="Llama", **more):
    config = getattr(transformers, kind + "Config")(vocab_size=V, max_position_embeddings=7, hidden_size=24, num_attention_heads=6, num_key_value_heads=2,
                                                     num_hidden_layers=2, intermediate_size=20, rms_norm_eps=1e-5, attn_implementation="eager",
                                                     **{"rope_theta": 500.0, "tie_word_embeddings": False} | more)
    case(name, getattr(transformers, kind + "ForCausalLM")(config), {"tokens": tokens}, labels, lambda m: m(tokens).logits)


llama("llama")
llama("llama_tied", tie_word_embeddings=True)


class RNNModel(torch.nn.Module):
    """The part of pytorch/examples, word_language_model/model.py, that has parameters, under its names."""

    def __init__(self, inner, hidden, layers, tied):
        super().__init__()
        self.encoder = torch.nn.Embedding(V, inner)
        self.rnn = torch.nn.LSTM(inner, hidden, layers)
        self.decoder = torch.nn.Linear(hidden, V)
        if tied:
            self.decoder.weight = self.encoder.weight

    def forward(self, tokens):
        return self.decoder(self.rnn(self.encoder(tokens.T))[0]).transpose(0, 1)


case("lstm_lm", RNNModel(6, 9, 2, False), {"tokens": tokens}, labels, lambda m: m(tokens))
case("lstm_lm_tied", RNNModel(6, 6, 1, True), {"tokens": tokens}, labels, lambda m: m(tokens))
# Without a pad_token_id, whose row torch.nn.Embedding leaves as it is: masked tokens have no gradient anyway.
bert = transformers.BertConfig(vocab_size=V, max_position_embeddings=7, hidden_size=12, num_attention_heads=3, num_hidden_layers=2,
                               intermediate_size=20, num_labels=3, pad_token_id=None, attn_implementation="eager")
mask, types = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]), torch.tensor([[0, 0, 1, 1, 0], [0, 0, 0, 1, 1]])
case("bert", transformers.BertForSequenceClassification(bert), {"input_ids": tokens, "attention_mask": mask, "token_type_ids": types},
     torch.tensor([2, 0]), lambda m: m(tokens, mask, types).logits)
# As Llama 3.1's, with heads wider than the width has room for: of five pairs some turn often, some seldom in two places, some in between.
llama("llama_stretched", head_dim=10,
      rope_parameters={"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 0.05, "high_freq_factor": 0.25,
                       "original_max_position_embeddings": 2})
llama("qwen2", "Qwen2")  # with biases
cases.write()

# A folder of Hugging Face: a BERT of five classes, what it is given, and what it tells; prints the loss before and after a step.
HERE = pathlib.Path(__file__).resolve().parent
torch.manual_seed(11)
bert = transformers.BertConfig(vocab_size=40, max_position_embeddings=9, hidden_size=12, num_attention_heads=3, num_hidden_layers=2,
                               intermediate_size=20, num_labels=5, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
net = transformers.BertForSequenceClassification(bert).float()
for parameter in net.parameters():
    torch.nn.init.normal_(parameter, std=0.3)
data = {"input_ids": torch.randint(40, (6, 7)), "attention_mask": (torch.arange(7) < torch.tensor([7, 5, 7, 3, 6, 7])[:, None]).long(),
        "token_type_ids": torch.randint(2, (6, 7)), "labels": torch.tensor([0, 3, 1, 2, 3, 0])}
net.save_pretrained(HERE / "bert")
numpy.savez(HERE / "bert" / "data.npz", **data)
numpy.savez(HERE / "bert" / "told.npz", labels=net(**data).logits.detach().float())
optimizer, losses = torch.optim.SGD(net.parameters(), 0.05), []
for step in range(2):
    optimizer.zero_grad()
    loss = net(**data).loss
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("bert", losses)
