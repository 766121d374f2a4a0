import numpy as np
import torch

from quanet.nn.networks import TextLSTM


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def by_hand(network, ids):
    """Scores and embedding of one text, from the equations of the LSTM."""
    weight = {name: value.detach().numpy() for name, value in network.named_parameters()}
    hidden = cell = np.zeros(network.lstm.hidden_size, dtype=np.float32)
    for word in weight["words.weight"][ids]:
        gates = weight["lstm.weight_ih_l0"] @ word + weight["lstm.bias_ih_l0"]
        gates = gates + weight["lstm.weight_hh_l0"] @ hidden + weight["lstm.bias_hh_l0"]
        enter, keep, candidate, leave = np.split(gates, 4)
        cell = sigmoid(keep) * cell + sigmoid(enter) * np.tanh(candidate)
        hidden = sigmoid(leave) * np.tanh(cell)
    first = np.maximum(weight["embed.0.weight"] @ hidden + weight["embed.0.bias"], 0)
    embedding = np.maximum(weight["embed.3.weight"] @ first + weight["embed.3.bias"], 0)
    return weight["score.1.weight"] @ embedding + weight["score.1.bias"], embedding


def test_text_lstm_follows_its_equations():
    network = TextLSTM(9, 3, word_size=4, hidden=3, dense=6, embedding_size=5).eval()
    texts = [[4, 7, 2, 8], [5], [], [3, 3, 6]]
    ids = torch.tensor([text + [0] * (4 - len(text)) for text in texts])
    with torch.no_grad():
        scores, embeddings = network(ids, torch.tensor([len(text) for text in texts]))
    for position, text in enumerate(texts):
        expected_scores, expected_embedding = by_hand(network, text)
        np.testing.assert_allclose(scores[position].numpy(), expected_scores, atol=1e-6)
        np.testing.assert_allclose(embeddings[position].numpy(), expected_embedding, atol=1e-6)


def test_what_stands_behind_a_text_is_not_read():
    network = TextLSTM(9, 2, hidden=3, dense=6).eval()
    length = torch.tensor([2])
    padded, followed = (network(torch.tensor([ids]), length)[0] for ids in ([4, 7, 0, 0], [4, 7, 5, 8]))
    assert torch.equal(padded, followed)


def test_the_papers_sizes_are_the_defaults():
    shapes = {name: tuple(value.shape) for name, value in TextLSTM(5002, 2).named_parameters()}
    assert shapes["words.weight"] == (5002, 100)
    assert shapes["lstm.weight_hh_l0"] == (4 * 128, 128)
    assert shapes["embed.0.weight"] == (1024, 128)
    assert shapes["embed.3.weight"] == (100, 1024)
    assert shapes["score.1.weight"] == (2, 100)
