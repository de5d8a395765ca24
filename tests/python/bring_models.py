# SPDX-License-Identifier: Apache-2.0
"""Models that people bring, made small: the architectures of transformers, and modules as they are written by hand. MODELS has, under a name,
a function that gives (module, inputs by forward()'s names, loss, targets); a loss of None is the module's own, of its inputs."""
import math

import torch
import torch.nn.functional as F
import transformers as T
from torch import nn

MODELS = {}
V, N, L = 99, 2, 12


def model(function):
    MODELS[function.__name__] = function
    return function


# ---- transformers --------------------------------------------------------------------------------------------------------

def tokens(most=V, n=N, length=L):
    return torch.randint(3, most, (n, length))


def masked():
    mask = torch.ones(N, L, dtype=torch.long)
    mask[0, 9:] = 0
    return mask


def pictures(size=32, channels=3):
    return torch.randn(N, channels, size, size)


def sequence(**kw):
    return dict(input_ids=tokens(), attention_mask=masked(), **kw)


def labels(classes=5):
    return torch.randint(0, classes, (N,))


BERT = dict(vocab_size=V, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, max_position_embeddings=40)
LLAMA = dict(BERT, num_key_value_heads=2, use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=2)
STAGES = dict(image_size=32, num_channels=3)
ENCDEC = dict(vocab_size=V, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
              decoder_ffn_dim=64, use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=2)


def classes_of_text(name, config, own=True, **kw):
    def build():
        net = getattr(T, config.replace("Config", "ForSequenceClassification"))(getattr(T, config)(num_labels=5, **kw))
        return (net, sequence(labels=labels()), None, ()) if own else (net, sequence(), lambda r, y: F.cross_entropy(r.logits, y), (labels(),))
    MODELS[name] = build


def decoder(name, config, cls=None, **kw):
    def build():
        ids = tokens()
        return (getattr(T, cls or config.replace("Config", "ForCausalLM"))(getattr(T, config)(**kw)),
                dict(input_ids=ids, attention_mask=torch.ones_like(ids), labels=ids), None, ())
    MODELS[name] = build


def of_pictures(name, config, cls=None, size=32, **kw):
    MODELS[name] = lambda: (getattr(T, cls or config.replace("Config", "ForImageClassification"))(getattr(T, config)(num_labels=5, **kw)),
                            dict(pixel_values=pictures(size), labels=labels()), None, ())


def features(result, y):
    return F.mse_loss(result.last_hidden_state, y)


classes_of_text("bert", "BertConfig", **BERT)
classes_of_text("distilbert", "DistilBertConfig", vocab_size=V, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=40)
classes_of_text("albert", "AlbertConfig", embedding_size=16, **BERT)
classes_of_text("electra", "ElectraConfig", embedding_size=16, **BERT)
classes_of_text("roberta", "RobertaConfig", **BERT)
classes_of_text("deberta", "DebertaConfig", own=False, relative_attention=True, pos_att_type=["c2p", "p2c"], pooler_hidden_size=32, **BERT)
classes_of_text("deberta_v2", "DebertaV2Config", own=False, relative_attention=True, pos_att_type=["c2p", "p2c"], position_buckets=8, norm_rel_ebd="layer_norm",
                share_att_key=True, pooler_hidden_size=32, **BERT)
classes_of_text("mpnet", "MPNetConfig", **BERT)
classes_of_text("convbert", "ConvBertConfig", embedding_size=16, **BERT)
classes_of_text("squeezebert", "SqueezeBertConfig", embedding_size=32, **BERT)
classes_of_text("mobilebert", "MobileBertConfig", embedding_size=32, intra_bottleneck_size=32, true_hidden_size=32, **BERT)
classes_of_text("modernbert", "ModernBertConfig", pad_token_id=0, cls_token_id=1, sep_token_id=2, bos_token_id=1, eos_token_id=2, local_attention=8, **BERT)
classes_of_text("esm", "EsmConfig", pad_token_id=1, mask_token_id=2, position_embedding_type="rotary", **BERT)
classes_of_text("roformer", "RoFormerConfig", embedding_size=32, **BERT)
classes_of_text("longformer", "LongformerConfig", attention_window=[4, 4], pad_token_id=1, **BERT)
classes_of_text("nystromformer", "NystromformerConfig", segment_means_seq_len=12, num_landmarks=12, **BERT)
classes_of_text("xlnet", "XLNetConfig", vocab_size=V, d_model=32, n_layer=2, n_head=4, d_inner=64, use_mems_train=False, use_mems_eval=False)
classes_of_text("funnel", "FunnelConfig", vocab_size=V, block_sizes=[1, 1], d_model=32, n_head=4, d_head=8, d_inner=64, num_decoder_layers=1)
decoder("gpt2", "GPT2Config", "GPT2LMHeadModel", vocab_size=V, n_positions=32, n_embd=32, n_layer=2, n_head=4, use_cache=False)
decoder("gpt_neo", "GPTNeoConfig", vocab_size=V, hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], window_size=4,
        max_position_embeddings=32, use_cache=False)
decoder("gptj", "GPTJConfig", vocab_size=V, n_positions=32, n_embd=32, n_layer=2, n_head=4, rotary_dim=4, use_cache=False)
decoder("gpt_neox", "GPTNeoXConfig", use_cache=False, **BERT)
decoder("opt", "OPTConfig", vocab_size=V, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, word_embed_proj_dim=32,
        max_position_embeddings=32, use_cache=False)
decoder("bloom", "BloomConfig", vocab_size=V, hidden_size=32, n_layer=2, n_head=4, use_cache=False)
decoder("falcon", "FalconConfig", use_cache=False, alibi=False, **BERT)
decoder("llama", "LlamaConfig", **LLAMA)
decoder("mistral", "MistralConfig", sliding_window=6, **LLAMA)
decoder("mixtral", "MixtralConfig", num_local_experts=4, num_experts_per_tok=2, **LLAMA)
decoder("qwen2", "Qwen2Config", **LLAMA)
decoder("qwen3", "Qwen3Config", head_dim=8, **LLAMA)
decoder("qwen2_moe", "Qwen2MoeConfig", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=32, **LLAMA)
decoder("gemma", "GemmaConfig", head_dim=8, **LLAMA)
decoder("gemma2", "Gemma2Config", head_dim=8, query_pre_attn_scalar=8, sliding_window=6, **LLAMA)
decoder("gemma3", "Gemma3TextConfig", "Gemma3ForCausalLM", head_dim=8, query_pre_attn_scalar=8, sliding_window=6, **LLAMA)
decoder("phi", "PhiConfig", **LLAMA)
decoder("phi3", "Phi3Config", **LLAMA)
decoder("stablelm", "StableLmConfig", **LLAMA)
decoder("starcoder2", "Starcoder2Config", **LLAMA)
decoder("olmo2", "Olmo2Config", **LLAMA)
decoder("cohere", "CohereConfig", **LLAMA)
decoder("granite", "GraniteConfig", **LLAMA)
decoder("mamba", "MambaConfig", vocab_size=V, hidden_size=32, num_hidden_layers=2, state_size=4, use_cache=False)
of_pictures("vit", "ViTConfig", patch_size=8, image_size=32, **{k: BERT[k] for k in ("hidden_size", "num_hidden_layers", "num_attention_heads",
                                                                                  "intermediate_size")})
VIT = dict(patch_size=8, image_size=32, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
of_pictures("deit", "DeiTConfig", **VIT)
of_pictures("beit", "BeitConfig", use_relative_position_bias=True, **VIT)
of_pictures("dinov2", "Dinov2Config", **VIT)
of_pictures("swin", "SwinConfig", image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)
of_pictures("swinv2", "Swinv2Config", image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)
of_pictures("convnext", "ConvNextConfig", depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32], size=64)
of_pictures("convnextv2", "ConvNextV2Config", depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32], size=64)
of_pictures("resnet", "ResNetConfig", embedding_size=8, depths=[1, 1], hidden_sizes=[8, 16], layer_type="basic", size=64)
of_pictures("regnet", "RegNetConfig", embedding_size=8, depths=[1, 1], hidden_sizes=[8, 16], groups_width=4, size=64)
of_pictures("poolformer", "PoolFormerConfig", depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32], size=64)
of_pictures("mobilevit", "MobileViTConfig", image_size=64, hidden_sizes=[16, 24, 32], neck_hidden_sizes=[8, 8, 16, 16, 24, 24, 32], size=64)
of_pictures("mobilenet_v2_hf", "MobileNetV2Config", "MobileNetV2ForImageClassification", depth_multiplier=0.35, size=64)
of_pictures("levit", "LevitConfig", image_size=64, hidden_sizes=[32, 48, 64], depths=[1, 1, 1], num_attention_heads=[2, 3, 4], key_dim=[8, 8, 8], size=64)
of_pictures("pvt", "PvtConfig", image_size=64, depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32], num_attention_heads=[1, 2, 2, 4], size=64)
of_pictures("focalnet", "FocalNetConfig", image_size=32, patch_size=2, embed_dim=16, depths=[1, 1], size=32)


@model
def t5():
    config = T.T5Config(vocab_size=V, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, use_cache=False, decoder_start_token_id=0)
    return T.T5ForConditionalGeneration(config), sequence(labels=tokens(length=7)), None, ()


@model
def bart():
    return T.BartForConditionalGeneration(T.BartConfig(max_position_embeddings=40, **ENCDEC)), sequence(labels=tokens(length=7)), None, ()


@model
def marian():
    return T.MarianMTModel(T.MarianConfig(max_position_embeddings=40, **ENCDEC)), sequence(labels=tokens(length=7)), None, ()


@model
def whisper():
    config = T.WhisperConfig(num_mel_bins=8, max_source_positions=20, max_target_positions=16, begin_suppress_tokens=None, **ENCDEC)
    return T.WhisperForConditionalGeneration(config), dict(input_features=torch.randn(N, 8, 40), labels=tokens(length=7)), None, ()


@model
def clip():
    config = T.CLIPConfig(text_config=dict(BERT, eos_token_id=2), vision_config=VIT, projection_dim=16)
    ids = tokens()
    ids[:, -1] = 2
    return T.CLIPModel(config), dict(input_ids=ids, pixel_values=pictures(), attention_mask=torch.ones_like(ids)), \
        lambda r: F.cross_entropy(r.logits_per_text, torch.arange(N)) + F.cross_entropy(r.logits_per_image, torch.arange(N)), ()


@model
def siglip():
    config = T.SiglipConfig(text_config=dict(BERT, pad_token_id=1, bos_token_id=1, eos_token_id=2), vision_config=VIT)
    return T.SiglipModel(config), dict(input_ids=tokens(), pixel_values=pictures()), \
        lambda r: -F.logsigmoid(r.logits_per_text * (2 * torch.eye(N) - 1)).sum() / N, ()


@model
def segformer():
    config = T.SegformerConfig(depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32], num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=16, num_labels=5)
    return T.SegformerForSemanticSegmentation(config), dict(pixel_values=pictures(64), labels=torch.randint(0, 5, (N, 64, 64))), None, ()


@model
def detr():
    backbone = T.ResNetConfig(embedding_size=8, depths=[1, 1], hidden_sizes=[8, 16], layer_type="basic", out_features=["stage2"])
    config = T.DetrConfig(use_timm_backbone=False, backbone_config=backbone, backbone=None, use_pretrained_backbone=False, num_queries=6, num_labels=5, d_model=32,
                          encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64)
    return T.DetrForObjectDetection(config), dict(pixel_values=pictures(64)), \
        lambda r, c, b: F.cross_entropy(r.logits.flatten(0, 1), c.flatten()) + F.l1_loss(r.pred_boxes, b), \
        (torch.randint(0, 6, (N, 6)), torch.rand(N, 6, 4))


@model
def yolos():
    config = T.YolosConfig(num_detection_tokens=4, num_labels=5, **dict(VIT, image_size=[32, 32]))
    return T.YolosForObjectDetection(config), dict(pixel_values=pictures()), lambda r, y: F.mse_loss(r.logits, y), (torch.randn(N, 4, 6),)


@model
def dpt():
    config = T.DPTConfig(backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[8, 8, 16, 16], fusion_hidden_size=16, **dict(VIT, num_hidden_layers=4))
    return T.DPTForDepthEstimation(config), dict(pixel_values=pictures()), lambda r, y: F.l1_loss(r.predicted_depth, y), (torch.randn(N, 64, 64),)


SPEECH = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, conv_dim=(16, 16, 16), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 3),
              num_feat_extract_layers=3, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=2, mask_time_prob=0.0, classifier_proj_size=16, num_labels=5,
              vocab_size=20)


def of_sounds(name, config, cls, **kw):
    MODELS[name] = lambda: (getattr(T, cls)(getattr(T, config)(**dict(SPEECH, **kw))),
                            dict(input_values=torch.randn(N, 800), labels=torch.randint(1, 5, (N, 4) if cls.endswith("CTC") else (N,))), None, ())


of_sounds("wav2vec2", "Wav2Vec2Config", "Wav2Vec2ForSequenceClassification")
of_sounds("wav2vec2_ctc", "Wav2Vec2Config", "Wav2Vec2ForCTC", pad_token_id=0)
of_sounds("hubert", "HubertConfig", "HubertForSequenceClassification")
of_sounds("wavlm", "WavLMConfig", "WavLMForSequenceClassification", num_buckets=16, max_bucket_distance=20)


@model
def ast():
    config = T.ASTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, patch_size=8, frequency_stride=8, time_stride=8,
                         max_length=32, num_mel_bins=16, num_labels=5)
    return T.ASTForAudioClassification(config), dict(input_values=torch.randn(N, 32, 16), labels=labels()), None, ()


@model
def videomae():
    config = T.VideoMAEConfig(num_frames=4, tubelet_size=2, num_labels=5, **VIT)
    return T.VideoMAEForVideoClassification(config), dict(pixel_values=torch.randn(N, 4, 3, 32, 32), labels=labels()), None, ()


@model
def patchtst():
    config = T.PatchTSTConfig(num_input_channels=3, context_length=32, patch_length=8, patch_stride=8, prediction_length=4, d_model=32, num_hidden_layers=2,
                              num_attention_heads=4, ffn_dim=64, loss="mse")
    return T.PatchTSTForPrediction(config), dict(past_values=torch.randn(N, 32, 3), future_values=torch.randn(N, 4, 3)), None, ()


@model
def sam_encoder():
    config = T.SamVisionConfig(hidden_size=32, output_channels=16, num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8, window_size=2,
                               mlp_dim=64, global_attn_indexes=[1])
    from transformers.models.sam.modeling_sam import SamVisionEncoder
    return SamVisionEncoder(config), dict(pixel_values=pictures()), features, (torch.randn(N, 16, 4, 4),)


# ---- by hand ----------------------------------------------------------------------------------------------------------------

def of(name, inputs, loss, *targets):
    """A class of a module, to be made without arguments, is a model."""
    def keep(cls):
        MODELS[name] = lambda: (cls(), inputs() if callable(inputs) else inputs, loss, tuple(t() if callable(t) else t for t in targets))
        return cls
    return keep


def rand(*shape):
    return lambda: torch.randn(*shape)


def ints(most, *shape):
    return lambda: torch.randint(0, most, shape)


def named(**makers):
    return lambda: {k: m() for k, m in makers.items()}


def double(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True),
                         nn.Conv2d(o, o, 3, padding=1), nn.GroupNorm(2, o), nn.SiLU(inplace=True))


@of("unet", named(x=rand(N, 3, 36, 36)), F.cross_entropy, ints(3, N, 36, 36))
class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.inc, self.d1, self.d2 = double(3, 8), double(8, 16), double(16, 32)
        self.up1, self.up2 = nn.ConvTranspose2d(32, 16, 2, stride=2), nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.u1, self.u2, self.out = double(32, 16), double(24, 8), nn.Conv2d(8, 3, 1)

    def forward(self, x):
        a = self.inc(x)
        b = self.d1(F.max_pool2d(a, 2))
        c = self.d2(F.max_pool2d(b, 2))
        y = self.up1(c)
        dy, dx = b.size(2) - y.size(2), b.size(3) - y.size(3)
        y = F.pad(y, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        y = self.u1(torch.cat([b, y], dim=1))
        return self.out(self.u2(torch.cat([a, self.up2(y)], dim=1)))


@of("vae", named(x=rand(N, 20)), lambda r, y: F.mse_loss(r[0], y) - 0.5 * torch.mean(1 + r[2] - r[1].pow(2) - r[2].exp()), rand(N, 20))
class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.mu, self.logvar, self.dec = nn.Linear(20, 16), nn.Linear(16, 4), nn.Linear(16, 4), nn.Linear(4, 20)

    def forward(self, x):
        h = torch.relu(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h)
        std = torch.exp(0.5 * logvar)
        z = mu + torch.randn_like(std) * std if self.training else mu
        return self.dec(z), mu, logvar


@of("gan_generator", named(z=rand(N, 16)), F.mse_loss, rand(N, 3, 16, 16))
class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.ConvTranspose2d(16, 16, 4, 1, 0, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
                                  nn.ConvTranspose2d(16, 8, 4, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
                                  nn.ConvTranspose2d(8, 3, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, z):
        return self.main(z[..., None, None])


@of("discriminator_sn", named(x=rand(N, 3, 16, 16)), F.binary_cross_entropy, lambda: torch.rand(N))
class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        sn = nn.utils.parametrizations.spectral_norm
        self.main = nn.Sequential(sn(nn.Conv2d(3, 8, 4, 2, 1)), nn.LeakyReLU(0.2, True), sn(nn.Conv2d(8, 16, 4, 2, 1)), nn.LeakyReLU(0.2, True),
                                  nn.Flatten(), sn(nn.Linear(256, 1)), nn.Sigmoid())

    def forward(self, x):
        return self.main(x).squeeze(1)


@of("lstm_packed", named(x=rand(N, 9, 6), lengths=lambda: torch.tensor([9, 5])), F.cross_entropy, ints(3, N))
class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.fc = nn.LSTM(6, 8, 2, batch_first=True, bidirectional=True), nn.Linear(16, 3)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
        out, (h, c) = self.lstm(packed)
        out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])
        return self.fc(out.mean(1) + torch.cat([h[-2], h[-1]], 1))


@of("lstm_embedding", named(ids=ints(V, N, 9)), F.cross_entropy, ints(3, N))
class LstmText(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.lstm = nn.Embedding(V, 8, padding_idx=0), nn.LSTM(8, 16, 2, batch_first=True, dropout=0.0, bidirectional=True)
        self.att, self.fc = nn.Linear(32, 1), nn.Linear(32, 3)

    def forward(self, ids):
        h0 = torch.zeros(4, ids.size(0), 16)
        out, _ = self.lstm(self.emb(ids), (h0, torch.zeros_like(h0)))
        w = torch.softmax(self.att(out).squeeze(-1).masked_fill(ids == 0, -1e9), 1)
        return self.fc(torch.bmm(w.unsqueeze(1), out).squeeze(1))


@of("gru_cells", named(x=rand(N, 5, 6)), F.mse_loss, rand(N, 5, 4))
class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.lstm, self.out = nn.GRUCell(6, 8), nn.LSTMCell(8, 8), nn.Linear(8, 4)

    def forward(self, x):
        h, s, c = (x.new_zeros(x.shape[0], 8) for _ in range(3))
        told = []
        for t in range(x.shape[1]):
            h = self.gru(x[:, t], h)
            s, c = self.lstm(h, (s, c))
            told.append(self.out(s))
        return torch.stack(told, dim=1)


@of("seq2seq", named(src=ints(V, N, 7), tgt=ints(V, N, 6)), lambda r, y: F.cross_entropy(r.reshape(-1, V), y.reshape(-1)), ints(V, N, 6))
class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.enc, self.dec = nn.Embedding(V, 16), nn.GRU(16, 16, batch_first=True), nn.GRUCell(32, 16)
        self.out = nn.Linear(16, V)
        self.out.weight = self.e.weight

    def forward(self, src, tgt):
        memory, h = self.enc(self.e(src))
        h, told = h[0], []
        for t in range(tgt.size(1)):
            w = F.softmax(torch.einsum("bd,btd->bt", h, memory), dim=-1)
            context = torch.einsum("bt,btd->bd", w, memory)
            h = self.dec(torch.cat((self.e(tgt[:, t]), context), -1), h)
            told += [self.out(h)]
        return torch.stack(told, 1)


@of("siamese", named(a=rand(N, 3, 16, 16), b=rand(N, 3, 16, 16)), lambda r, y: F.cosine_embedding_loss(r[0], r[1], y), lambda: torch.tensor([1., -1.]))
class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.PReLU(), nn.AdaptiveAvgPool2d(5), nn.Flatten(), nn.Linear(200, 8))

    def forward(self, a, b):
        return F.normalize(self.net(a), dim=1), F.normalize(self.net(b), dim=1)


@of("triplet", named(a=rand(N, 6), p=rand(N, 6), n=rand(N, 6)), lambda r: nn.TripletMarginLoss()(*r))
class Triplet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ELU(), nn.Linear(8, 4))

    def forward(self, a, p, n):
        return self.net(a), self.net(p), self.net(n)


def edges():
    return torch.tensor([[0, 1, 2, 3, 4, 5, 0, 2], [1, 2, 3, 4, 5, 0, 3, 5]])


@of("gcn_scatter", named(x=rand(6, 5), edge_index=edges), F.cross_entropy, ints(3, 6))
class Gcn(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 8, bias=False), nn.Linear(8, 3)

    def hop(self, x, edge_index):
        row, col = edge_index
        deg = torch.zeros(x.size(0)).scatter_add_(0, col, torch.ones_like(col, dtype=x.dtype)) + 1
        norm = deg.pow(-0.5)
        out = torch.zeros_like(x)
        out.index_add_(0, col, x[row] * (norm[row] * norm[col]).unsqueeze(-1))
        return out + x / deg.unsqueeze(-1)

    def forward(self, x, edge_index):
        return self.hop(self.b(F.relu(self.hop(self.a(x), edge_index))), edge_index)


@of("gat_scatter_max", named(x=rand(6, 5), edge_index=edges), F.cross_entropy, ints(3, 6))
class Gat(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.att, self.out = nn.Linear(5, 8), nn.Parameter(torch.randn(16) / 4), nn.Linear(8, 3)

    def forward(self, x, edge_index):
        h, (src, dst) = self.w(x), edge_index
        e = F.leaky_relu(torch.cat([h[src], h[dst]], -1) @ self.att, 0.2)
        top = torch.full((x.size(0),), float("-inf")).scatter_reduce(0, dst, e, "amax")
        w = torch.exp(e - top[dst])
        total = torch.zeros(x.size(0)).index_add(0, dst, w)
        out = torch.zeros_like(h).scatter_add(0, dst[:, None].expand(-1, 8), h[src] * (w / total[dst])[:, None])
        mean = torch.zeros_like(h).scatter_reduce(0, dst[:, None].expand(-1, 8), h[src], "mean", include_self=False)
        return self.out(F.elu(out + mean))


@of("gnn_dense", named(x=rand(N, 5, 4), adj=lambda: (torch.rand(N, 5, 5) > 0.5).float()), F.mse_loss, rand(N))
class DenseGnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.out = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x, adj):
        adj = adj + torch.eye(adj.size(-1), device=adj.device)
        d = adj.sum(-1).clamp(min=1).rsqrt()
        adj = d[:, :, None] * adj * d[:, None]
        h = torch.relu(adj @ self.a(x))
        return self.out(torch.relu(adj @ self.b(h)).max(dim=1).values)[:, 0]


@of("transformer_masks", named(src=ints(V, N, 7), tgt=ints(V, N, 6)), lambda r, y: F.cross_entropy(r.transpose(1, 2), y, ignore_index=0), ints(V, N, 6))
class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(V, 16, padding_idx=0)
        position = torch.arange(20).unsqueeze(1) * torch.exp(torch.arange(0, 16, 2) * (-math.log(10000.0) / 16))
        pe = torch.zeros(20, 16)
        pe[:, 0::2], pe[:, 1::2] = torch.sin(position), torch.cos(position)
        self.register_buffer("pe", pe)
        self.t = nn.Transformer(16, 4, 1, 1, 32, dropout=0.0, batch_first=True)
        self.out = nn.Linear(16, V)

    def forward(self, src, tgt):
        mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(1))
        embed = lambda x: self.e(x) * math.sqrt(16) + self.pe[:x.size(1)]
        return self.out(self.t(embed(src), embed(tgt), tgt_mask=mask, src_key_padding_mask=(src == 0), tgt_key_padding_mask=(tgt == 0),
                               memory_key_padding_mask=(src == 0)))


@of("encoder_layers", named(x=rand(N, 7, 16), pad=lambda: torch.arange(7)[None] >= torch.tensor([7, 4])[:, None]), F.cross_entropy, ints(3, N))
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.enc, self.cls, self.fc = nn.TransformerEncoder(layer, 2), nn.Parameter(torch.randn(1, 1, 16)), nn.Linear(16, 3)

    def forward(self, x, pad):
        x = torch.cat([self.cls.expand(x.size(0), -1, -1), x], 1)
        return self.fc(self.enc(x, src_key_padding_mask=F.pad(pad, (1, 0), value=False))[:, 0])


@of("wavenet", named(x=rand(N, 1, 40)), F.mse_loss, rand(N, 4, 40))
class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        wn = nn.utils.parametrizations.weight_norm
        self.first = nn.Conv1d(1, 8, 1)
        self.filters = nn.ModuleList(wn(nn.Conv1d(8, 16, 2, dilation=2**i)) for i in range(4))
        self.res, self.skip = nn.ModuleList(nn.Conv1d(8, 8, 1) for _ in range(4)), nn.ModuleList(nn.Conv1d(8, 4, 1) for _ in range(4))

    def forward(self, x):
        x, skips = self.first(x), 0
        for i, (f, r, s) in enumerate(zip(self.filters, self.res, self.skip)):
            a, b = f(F.pad(x, (2**i, 0))).chunk(2, dim=1)
            y = torch.tanh(a) * torch.sigmoid(b)
            skips = skips + s(y)
            x = x + r(y)
        return torch.relu(skips)


@of("tabular", named(numbers=rand(N, 5), categories=ints(4, N, 3)), lambda r, y: F.binary_cross_entropy_with_logits(r.squeeze(-1), y), lambda: torch.rand(N))
class Tabular(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(4, 3) for _ in range(3))
        self.bn, self.net = nn.BatchNorm1d(5), nn.Sequential(nn.Linear(14, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Dropout(0.0), nn.Linear(16, 1))

    def forward(self, numbers, categories):
        each = [e(categories[:, i]) for i, e in enumerate(self.embeddings)]
        return self.net(torch.cat(each + [self.bn(numbers)], 1))


@of("deepfm", named(fields=ints(5, N, 4)), lambda r, y: F.binary_cross_entropy(r, y), lambda: torch.rand(N))
class DeepFm(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.w, self.mlp = nn.Embedding(20, 6), nn.Embedding(20, 1), nn.Sequential(nn.Linear(24, 8), nn.ReLU(), nn.Linear(8, 1))
        self.bias = nn.Parameter(torch.zeros(1))
        self.register_buffer("offsets", torch.tensor([0, 5, 10, 15]), persistent=False)

    def forward(self, fields):
        i = fields + self.offsets
        e = self.e(i)
        fm = 0.5 * (e.sum(1).pow(2) - e.pow(2).sum(1)).sum(1, keepdim=True)
        return torch.sigmoid(fm + self.w(i).sum(1) + self.bias + self.mlp(e.view(-1, 24))).squeeze(1)


@of("several_outputs", named(image=rand(N, 1, 8, 8), numbers=rand(N, 4)), lambda r, c, b: F.cross_entropy(r["classes"], c) + F.smooth_l1_loss(r["box"], b),
    ints(3, N), rand(N, 4))
class Several(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.a, self.b = nn.Conv2d(1, 4, 3), nn.Linear(148, 3), nn.Linear(148, 4)

    def forward(self, image, numbers):
        h = torch.cat([self.conv(image).flatten(1), numbers], 1)
        return {"classes": self.a(h), "box": self.b(h), "hidden": h}


@of("dict_input", lambda: dict(batch=dict(x=torch.randn(N, 4), y=torch.randn(N, 3))), F.mse_loss, rand(N, 2))
class DictInput(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(7, 2)

    def forward(self, batch):
        return self.fc(torch.cat([batch["x"], batch["y"]], dim=-1))


@of("list_input", lambda: dict(xs=[torch.randn(N, 4), torch.randn(N, 3)], scale=torch.rand(N, 1)), F.mse_loss, rand(N, 2))
class ListInput(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(7, 2)

    def forward(self, xs, scale=None):
        return self.fc(torch.cat(xs, dim=-1)) * scale


@of("ema_buffer", named(x=rand(N, 4)), F.mse_loss, rand(N, 3))
class EmaBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        if self.training:
            self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        return self.fc(x - self.mean)


@of("kwargs_default", named(x=rand(N, 4)), F.mse_loss, rand(N, 3))
class Defaults(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.steps = nn.Linear(4, 4), 3
        self.out = nn.Linear(4, 3)

    def forward(self, x, mask=None, scale: float = 0.5):
        for _ in range(self.steps):
            x = x + scale * torch.tanh(self.fc(x))
        return self.out(x if mask is None else x * mask)


@of("activations", named(x=rand(N, 6)), F.huber_loss, rand(N, 6))
class Activations(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(8))
        self.alpha = nn.Parameter(torch.ones(6))

    def forward(self, x):
        f = [lambda v: v + torch.sin(self.alpha * v)**2 / (self.alpha + 1e-9), lambda v: v * torch.tanh(F.softplus(v)), lambda v: torch.relu(v)**2,
             lambda v: 0.5 * v * (1 + torch.tanh(0.79788456 * (v + 0.044715 * v**3))), F.softsign, F.tanhshrink, F.hardshrink,
             lambda v: torch.where(v > 0, v, torch.expm1(v)) + F.softshrink(v) + F.rrelu(v, training=False) + torch.sinc(v) + torch.heaviside(v.detach(), v.new_tensor(0.5))]
        for layer, g in zip(self.layers, f):
            x = x + g(layer(x))
        return x


@of("moe", named(x=rand(N, 5, 8)), F.mse_loss, rand(N, 5, 8))
class Moe(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(8, 4), nn.ModuleList(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)) for _ in range(4))

    def forward(self, x):
        w, i = torch.topk(F.softmax(self.gate(x), -1), 2)
        w = w / w.sum(-1, keepdim=True)
        mask = F.one_hot(i, 4).to(x.dtype)
        share = (mask * w.unsqueeze(-1)).sum(-2)
        return sum(share[..., k, None] * e(x) for k, e in enumerate(self.experts))


@of("rope_complex", named(x=rand(N, 6, 16)), F.mse_loss, rand(N, 6, 16))
class MetaLlama(nn.Module):
    """As Llama's own code has it."""

    def __init__(self):
        super().__init__()
        self.wq, self.wk, self.wv = (nn.Linear(16, 16, bias=False) for _ in range(3))
        freqs = torch.outer(torch.arange(12), 1.0 / (10000 ** (torch.arange(0, 4, 2).float() / 4)))
        self.freqs_cis = torch.polar(torch.ones_like(freqs), freqs)

    def rotate(self, x):
        c = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(c * self.freqs_cis[:x.shape[1]][None, :, None]).flatten(3).type_as(x)

    def forward(self, x):
        q, k, v = (w(x).view(x.shape[0], x.shape[1], 4, 4) for w in (self.wq, self.wk, self.wv))
        q, k, v = (y.transpose(1, 2) for y in (self.rotate(q), self.rotate(k), v))
        scores = torch.matmul(q, k.transpose(2, 3)) / 2 + torch.triu(torch.full((6, 6), float("-inf")), diagonal=1)
        return torch.matmul(F.softmax(scores.float(), -1).type_as(q), v).transpose(1, 2).contiguous().view(x.shape[0], 6, -1)


@of("fft_layer", named(x=rand(N, 6, 8)), F.mse_loss, rand(N, 6, 8))
class FourierMix(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(5, 8, 2) / 4)
        self.n = nn.LayerNorm(8)

    def forward(self, x):
        y = torch.fft.rfft(x, dim=1, norm="ortho")[:, :4] * torch.view_as_complex(self.w)[:4]
        return self.n(x + torch.fft.irfft(y, n=x.size(1), dim=1, norm="ortho"))


@of("mdn", named(x=rand(N, 4)), lambda r, y: -torch.logsumexp(r[0] + torch.distributions.Normal(r[1], r[2]).log_prob(y[:, None]), -1).mean(), rand(N))
class Mdn(nn.Module):
    def __init__(self):
        super().__init__()
        self.h, self.pi, self.mu, self.sigma = nn.Linear(4, 8), nn.Linear(8, 3), nn.Linear(8, 3), nn.Linear(8, 3)

    def forward(self, x):
        h = torch.tanh(self.h(x))
        return F.log_softmax(self.pi(h), -1), self.mu(h), F.softplus(self.sigma(h)) + 1e-3


@of("nerf", named(rays=rand(N, 8, 3)), F.mse_loss, lambda: torch.rand(N, 3))
class Nerf(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(27, 16), nn.Linear(16, 4)
        self.register_buffer("freqs", 2.0 ** torch.linspace(0, 3, 4))

    def forward(self, rays):
        e = (rays[..., None] * self.freqs).flatten(-2)
        y = self.b(F.relu(self.a(torch.cat([rays, e.sin(), e.cos()], -1))))
        rgb, alpha = torch.sigmoid(y[..., :3]), 1 - torch.exp(-F.softplus(y[..., 3]) * 0.1)
        through = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha + 1e-10], -1), -1)[:, :-1]
        return torch.sum((alpha * through)[..., None] * rgb, -2)


@of("realnvp", named(x=rand(N, 4)), lambda r: (0.5 * r[0].pow(2).sum(-1) - r[1]).mean())
class RealNvp(nn.Module):
    def __init__(self):
        super().__init__()
        self.nets = nn.ModuleList(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8)) for _ in range(4))
        self.register_buffer("mask", torch.tensor([1., 0., 1., 0.]))

    def forward(self, x):
        log_det = x.new_zeros(x.shape[0])
        for i, net in enumerate(self.nets):
            m = self.mask if i % 2 == 0 else 1 - self.mask
            s, t = net(x * m).chunk(2, -1)
            s = torch.tanh(s) * (1 - m)
            x = x * m + (1 - m) * (x * torch.exp(s) + t)
            log_det += s.sum(-1)
        return x, log_det


@of("deepsets", named(x=rand(N, 5, 4), mask=lambda: torch.arange(5)[None] < torch.tensor([5, 3])[:, None]), F.mse_loss, rand(N, 2))
class DeepSets(nn.Module):
    def __init__(self):
        super().__init__()
        self.phi, self.rho = nn.Sequential(nn.Linear(4, 8), nn.ReLU6()), nn.Linear(16, 2)

    def forward(self, x, mask):
        h = self.phi(x) * mask[..., None]
        mean = h.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        top = h.masked_fill(~mask[..., None], float("-inf")).amax(1)
        return self.rho(torch.hstack([mean, top]))


@of("textcnn", named(ids=ints(V, N, 12)), F.cross_entropy, ints(3, N))
class TextCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.convs = nn.Embedding(V, 8), nn.ModuleList(nn.Conv2d(1, 4, (k, 8)) for k in (2, 3, 4))
        self.fc = nn.Linear(12, 3)

    def forward(self, ids):
        x = self.e(ids).unsqueeze(1)
        x = [F.relu(conv(x)).squeeze(3) for conv in self.convs]
        return self.fc(torch.cat([F.max_pool1d(i, i.size(2)).squeeze(2) for i in x], 1))


@of("embedding_bag", named(ids=ints(V, N, 6)), F.cross_entropy, ints(3, N))
class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.fc = nn.EmbeddingBag(V, 8, mode="mean"), nn.Linear(8, 3)

    def forward(self, ids):
        return self.fc(self.e(ids))


@of("segnet_unpool", named(x=rand(N, 3, 8, 8)), F.cross_entropy, ints(3, N, 8, 8))
class SegNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 3, 3, padding=1)
        self.pool, self.up = nn.MaxPool2d(2, 2, return_indices=True), nn.MaxUnpool2d(2, 2)

    def forward(self, x):
        y, at = self.pool(torch.relu(self.a(x)))
        return self.b(self.up(y, at))


@of("super_resolution", named(x=rand(N, 3, 8, 8)), F.l1_loss, rand(N, 3, 16, 16))
class Espcn(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.up = nn.Conv2d(3, 8, 5, padding=2, padding_mode="reflect"), nn.Conv2d(8, 12, 3, padding="same"), nn.PixelShuffle(2)

    def forward(self, x):
        return torch.clamp(self.up(self.b(torch.tanh(self.a(x)))) + F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False), -1.0, 1.0)


@of("spatial_transformer", named(x=rand(N, 1, 12, 12)), F.cross_entropy, ints(3, N))
class Stn(nn.Module):
    def __init__(self):
        super().__init__()
        self.loc, self.fc = nn.Sequential(nn.Flatten(), nn.Linear(144, 8), nn.ReLU(), nn.Linear(8, 6)), nn.Linear(144, 3)

    def forward(self, x):
        theta = self.loc(x).view(-1, 2, 3) * 0.1 + torch.eye(2, 3)
        return self.fc(F.grid_sample(x, F.affine_grid(theta, x.size(), align_corners=False), align_corners=False).flatten(1))


@of("vit_hand", named(x=rand(N, 3, 16, 16)), F.cross_entropy, ints(3, N))
class HandVit(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.pos, self.qkv = nn.Linear(48, 16), nn.Parameter(torch.randn(1, 16, 16) * 0.02), nn.Linear(16, 48)
        self.temperature, self.out, self.fc = nn.Parameter(torch.ones(4, 1, 1)), nn.Linear(16, 16), nn.Linear(16, 3)

    def forward(self, x):
        B, C, H, W = x.shape
        x = x.unfold(2, 4, 4).unfold(3, 4, 4).permute(0, 2, 3, 1, 4, 5).reshape(B, -1, C * 16)
        x = self.patch(x) + self.pos
        q, k, v = self.qkv(x).reshape(B, -1, 3, 4, 4).permute(2, 0, 3, 1, 4).unbind(0)
        a = (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1) * self.temperature).softmax(-1)
        return self.fc((x + self.out((a @ v).transpose(1, 2).reshape(B, -1, 16))).mean(1))


@of("linear_attention", named(x=rand(N, 6, 8)), F.mse_loss, rand(N, 6, 8))
class LinearAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        q, k, v = F.elu(self.q(x)) + 1, F.elu(self.k(x)) + 1, self.v(x)
        kv = torch.einsum("btd,bte->btde", k, v).cumsum(1)
        return torch.einsum("btd,btde->bte", q, kv) / torch.einsum("btd,btd->bt", q, k.cumsum(1)).unsqueeze(-1)


@of("se_fpn", named(x=rand(N, 3, 32, 32)), lambda r, *y: sum(F.mse_loss(a, b) for a, b in zip(r, y)), rand(N, 8, 16, 16), rand(N, 8, 8, 8))
class SeFpn(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(8, 16, 3, 2, 1, groups=4)
        self.se, self.l1, self.l2 = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(16, 4, 1), nn.Hardswish(), nn.Conv2d(4, 16, 1), nn.Hardsigmoid()), \
            nn.Conv2d(8, 8, 1), nn.Conv2d(16, 8, 1)

    def forward(self, x):
        a = F.mish(self.a(x))
        b = F.selu(self.b(a))
        b = b * self.se(b)
        top = self.l2(b)
        return self.l1(a) + F.interpolate(top, size=a.shape[-2:], mode="nearest"), top


@of("yolo_head", named(x=rand(N, 3, 32, 32)), F.mse_loss, rand(N, 48, 8))
class YoloHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Conv2d(3, 8, 8, 8), nn.Conv2d(8, 24, 1)
        self.register_buffer("anchors", torch.rand(3, 2))

    def forward(self, x):
        y = self.head(F.leaky_relu(self.body(x), 0.1))
        B, _, H, W = y.shape
        y = y.view(B, 3, 8, H, W).permute(0, 1, 3, 4, 2).contiguous()
        gy, gx = torch.meshgrid(torch.arange(H), torch.arange(W), indexing="ij")
        xy = (y[..., 0:2].sigmoid() * 2 - 0.5 + torch.stack((gx, gy), -1)) * 8
        wh = (y[..., 2:4].sigmoid() * 2) ** 2 * self.anchors.view(1, 3, 1, 1, 2)
        return torch.cat((xy, wh, y[..., 4:].sigmoid()), -1).view(B, -1, 8)


@of("nbeats", named(x=rand(N, 10)), F.l1_loss, rand(N, 3))
class NBeats(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 13)) for _ in range(3))

    def forward(self, x):
        forecast = torch.zeros(x.shape[0], 3)
        for block in self.blocks:
            back, ahead = torch.split(block(x), [10, 3], -1)
            x, forecast = x - back, forecast + ahead
        return forecast


@of("simclr", named(a=rand(4, 6), b=rand(4, 6)), lambda z: F.cross_entropy((z @ z.T / 0.5).masked_fill(torch.eye(8, dtype=torch.bool), -1e9),
                                                                           torch.cat([torch.arange(4, 8), torch.arange(4)])))
class SimClr(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4, bias=False))

    def forward(self, a, b):
        return F.normalize(torch.cat([self.net(a), self.net(b)]), dim=-1)


@of("arcface", named(x=rand(N, 6), label=ints(5, N)), F.cross_entropy, ints(5, N))
class ArcFace(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.weight = nn.Linear(6, 8), nn.Parameter(torch.randn(5, 8))

    def forward(self, x, label):
        cosine = F.linear(F.normalize(self.net(x)), F.normalize(self.weight)).clamp(-1 + 1e-6, 1 - 1e-6)
        sine = torch.sqrt(1.0 - torch.pow(cosine, 2))
        phi = torch.where(cosine > math.cos(math.pi - 0.5), cosine * math.cos(0.5) - sine * math.sin(0.5), cosine - 0.5 * math.sin(math.pi - 0.5))
        hot = torch.zeros_like(cosine).scatter_(1, label.view(-1, 1).long(), 1)
        return 30.0 * (hot * phi + (1.0 - hot) * cosine)


@of("capsule", named(x=rand(N, 1, 14, 14)), lambda r, y: F.multi_margin_loss(r, y), ints(3, N))
class Capsule(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.w = nn.Conv2d(1, 8, 6, 4), nn.Parameter(torch.randn(3, 18, 4, 4) / 4)

    @staticmethod
    def squash(s):
        n = (s ** 2).sum(-1, keepdim=True)
        return n / (1 + n) * s / torch.sqrt(n + 1e-8)

    def forward(self, x):
        u = self.squash(self.conv(x).view(x.size(0), 18, 4))
        hat = torch.einsum("kpij,bpj->bkpi", self.w, u)
        b = torch.zeros(hat.shape[:3])
        for _ in range(2):
            v = self.squash((F.softmax(b, dim=1).unsqueeze(-1) * hat).sum(2))
            b = b + torch.einsum("bkpi,bki->bkp", hat.detach(), v)
        return torch.norm(v, dim=-1)


@of("crf", named(x=rand(N, 6, 5), tags=ints(4, N, 6)), None)
class Crf(nn.Module):
    """Gives its own loss."""

    def __init__(self):
        super().__init__()
        self.rnn, self.fc, self.t = nn.GRU(5, 8, batch_first=True, bidirectional=True), nn.Linear(16, 4), nn.Parameter(torch.randn(4, 4))

    def forward(self, x, tags):
        e = self.fc(self.rnn(x)[0])
        gold = e.gather(2, tags.unsqueeze(-1)).squeeze(-1).sum(1) + self.t[tags[:, :-1], tags[:, 1:]].sum(1)
        a = e[:, 0]
        for i in range(1, e.shape[1]):
            a = torch.logsumexp(a.unsqueeze(2) + self.t.unsqueeze(0), dim=1) + e[:, i]
        return (torch.logsumexp(a, -1) - gold).mean()


@of("ctc_net", named(x=rand(N, 20, 6)), lambda r, y: F.ctc_loss(r, y, torch.full((N,), 20), torch.full((N,), 4)), lambda: torch.randint(1, 7, (N, 4)))
class CtcNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.fc = nn.LSTM(6, 8, bidirectional=True, batch_first=True), nn.Linear(16, 7)

    def forward(self, x):
        return F.log_softmax(self.fc(self.rnn(x)[0]), -1).transpose(0, 1)


@of("unet3d", named(x=rand(N, 1, 8, 8, 8)), lambda r, y: 1 - 2 * (torch.sigmoid(r) * y).sum() / (torch.sigmoid(r).sum() + y.sum() + 1), lambda: torch.rand(N, 1, 8, 8, 8))
class UNet3d(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.up, self.c = nn.Conv3d(1, 4, 3, padding=1), nn.Conv3d(4, 8, 3, padding=1), nn.ConvTranspose3d(8, 4, 2, 2), nn.Conv3d(8, 1, 1)
        self.n = nn.InstanceNorm3d(4, affine=True)

    def forward(self, x):
        a = F.leaky_relu(self.n(self.a(x)), inplace=True)
        return self.c(torch.cat([a, self.up(F.relu(self.b(F.max_pool3d(a, 2))))], 1))


@of("diffusion", named(x=rand(N, 3, 8, 8), t=ints(1000, N)), F.mse_loss, rand(N, 3, 8, 8))
class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.time, self.gn = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 3, 3, padding=1), nn.Linear(8, 32), nn.GroupNorm(4, 16)

    def forward(self, x, t):
        f = torch.exp(-math.log(10000) * torch.arange(4) / 4)
        e = t.float()[:, None] * f[None]
        scale, shift = self.time(torch.cat([e.sin(), e.cos()], -1))[:, :, None, None].chunk(2, 1)
        return self.b(F.silu(self.gn(self.a(x)) * (1 + scale) + shift))


@of("boolean_index", named(x=rand(4, 6)), F.mse_loss, rand(4, 6))
class BooleanIndex(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x):
        y = self.fc(x)
        y[x > 1] = 0.5
        y[:, 0] *= 2
        y[..., 1:3] += y[..., 3:5].detach()
        out = torch.zeros_like(y)
        out[:, ::2] = y[:, 1::2]
        return out + y.roll(1, -1) + y.flip(0)


@of("checkpointed", named(x=rand(N, 6)), F.mse_loss, rand(N, 6))
class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Sequential(nn.Linear(6, 6), nn.GELU()), nn.LayerNorm(6)

    def forward(self, x):
        return self.b(torch.utils.checkpoint.checkpoint(self.a, x, use_reentrant=False))


class _Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.sign(x)

    @staticmethod
    def backward(ctx, g):
        return g


@of("straight_through", named(x=rand(N, 6)), lambda r, y: F.mse_loss(r[0], y) + 0.25 * r[1], rand(N, 6))
class VqVae(nn.Module):
    """Codes of a table, with a gradient past them."""

    def __init__(self):
        super().__init__()
        self.enc, self.dec, self.codes = nn.Linear(6, 4), nn.Linear(4, 6), nn.Embedding(5, 4)

    def forward(self, x):
        z = self.enc(x)
        d = z.pow(2).sum(1, keepdim=True) + self.codes.weight.pow(2).sum(1) - 2 * z @ self.codes.weight.t()
        q = self.codes(torch.argmin(d, dim=1))
        loss = F.mse_loss(q, z.detach()) + F.mse_loss(q.detach(), z)
        return self.dec(z + (q - z).detach()), loss


@of("own_gradient", named(x=rand(N, 6)), F.mse_loss, rand(N, 6))
class OwnGradient(nn.Module):
    """A torch.autograd.Function, whose backward is not that of its forward."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x):
        return self.b(_Clip.apply(self.a(x)))
