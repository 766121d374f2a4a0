from importlib.util import find_spec

import numpy as np
import pytest
import torch

from quanet.nn import encoders
from quanet.nn.encoders import load_encoder

# Found, not imported: that takes seconds, and only the process that runs these tests needs it.
pytestmark = pytest.mark.skipif(not find_spec("sentence_transformers"), reason="the extra transformers")


@pytest.fixture(scope="module")
def encoder():
    return load_encoder(None).eval()


def test_the_vector_of_a_whole_word_is_its_embedding(encoder):
    words = ["good", "bad", "film"]
    tokens = torch.tensor(encoder.tokenizer.convert_tokens_to_ids(words))
    np.testing.assert_allclose(encoders.embed_tokens(encoder, tokens), encoder.encode(words), atol=1e-5)


def test_every_token_is_read_in_order(encoder, monkeypatch):
    monkeypatch.setattr(encoders, "load_encoder", lambda model: encoder)
    monkeypatch.setattr(encoders, "embed_tokens", lambda encoder, tokens: tokens[:, None].numpy())
    np.testing.assert_array_equal(encoders.distil()[:, 0], np.arange(len(encoder.tokenizer)))
