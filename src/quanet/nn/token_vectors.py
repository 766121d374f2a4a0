"""Vectors of single tokens, by a sentence encoder that reads each of them alone."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from quanet.nn.encoders import load_encoder

BATCH = 1024  # tokens read together


def distil() -> NDArray[np.float32]:
    """The embedding of every token of the packaged encoder: (d, e)."""
    encoder = load_encoder(None).eval()
    parts = torch.split(torch.arange(len(encoder.tokenizer)), BATCH)
    return np.concatenate([embed_tokens(encoder, tokens) for tokens in parts])


def embed_tokens(encoder: Any, tokens: torch.Tensor) -> NDArray[np.float32]:
    """The embeddings of texts that have a single token each: (n,) -> (n, e)."""
    first, last = encoder.tokenizer.convert_tokens_to_ids(["[CLS]", "[SEP]"])
    ids = torch.stack([torch.full_like(tokens, first), tokens, torch.full_like(tokens, last)], dim=1)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    with torch.no_grad():
        return np.asarray(encoder(inputs)["sentence_embedding"].numpy(), dtype=np.float32)
