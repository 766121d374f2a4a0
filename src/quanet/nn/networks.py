"""Forward passes: shapes and equations only."""

import torch
from torch import Tensor, nn


class TextLSTM(nn.Module):
    """Text to class scores and document embedding (Esuli, Moreo and Sebastiani, CIKM 2018, section 4).

    Words become vectors, an LSTM reads them in order, and two dense layers turn its last state into the embedding.

    Parameters
    ----------
    words : ids in use; id 0 is padding.
    k : number of classes.
    word_size, hidden, dense, embedding_size : widths of the word vectors, the LSTM and the two dense layers.
    dropout : share of either dense layer's outputs that a training step leaves out.

    Examples
    --------
    >>> import torch
    >>> scores, embeddings = TextLSTM(10, 2)(torch.tensor([[4, 7, 2], [5, 0, 0]]), torch.tensor([3, 1]))
    >>> scores.shape, embeddings.shape
    (torch.Size([2, 2]), torch.Size([2, 100]))
    """

    def __init__(
        self,
        words: int,
        k: int,
        *,
        word_size: int = 100,
        hidden: int = 128,
        dense: int = 1024,
        embedding_size: int = 100,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(words, word_size, padding_idx=0)
        self.lstm = nn.LSTM(word_size, hidden, batch_first=True)
        self.embed = nn.Sequential(
            nn.Linear(hidden, dense), nn.ReLU(), nn.Dropout(dropout), nn.Linear(dense, embedding_size), nn.ReLU()
        )
        self.score = nn.Sequential(nn.Dropout(dropout), nn.Linear(embedding_size, k))

    def forward(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Ids (b, t), padded behind, and numbers of words (b,) -> scores (b, k) before softmax, embeddings (b, e)."""
        states, _ = self.lstm(self.words(ids))  # (b, t, h)
        # The state after the last word: what is padded behind comes later, so no state up to here has read it.
        last = (lengths - 1).clamp(min=0)[:, None, None].expand(-1, 1, states.shape[-1])
        state = states.gather(1, last).squeeze(1)
        state = state * (lengths > 0)[:, None]  # an empty text leaves the LSTM where it starts: at zero
        embeddings = self.embed(state)
        return self.score(embeddings), embeddings


class PaperNetwork(nn.Module):
    """Bag of rows to prevalence (Esuli, Moreo and Sebastiani, CIKM 2018, section 3); two classes."""

    def __init__(self, row_width: int, *, hidden: int = 64, dense: tuple[int, int] = (1024, 512)) -> None:
        super().__init__()
        self.lstm = nn.LSTM(row_width, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Sequential(
            nn.Linear(2 * hidden + 8, dense[0]), nn.ReLU(), nn.Dropout(0.5),
            nn.Linear(dense[0], dense[1]), nn.ReLU(), nn.Dropout(0.5),
            nn.Linear(dense[1], 2),
        )  # fmt: skip

    def forward(self, rows: Tensor, statistics: Tensor) -> Tensor:
        """(b, n, 1 + e) sorted by posterior, (b, 8) -> (b, 2)."""
        _, (hidden, _) = self.lstm(rows)  # (2, b, h): both directions, each at its own end
        embedding = hidden.transpose(0, 1).flatten(1)
        prevalence: Tensor = self.head(torch.cat([embedding, statistics], dim=-1)).softmax(dim=-1)
        return prevalence


class ResidualNetwork(nn.Module):
    """What a base estimate should be corrected by, from rows pooled into quantile groups; any number of classes.

    One network serves all classes: it reads the groups in the order of a class's posterior and that class's statistics,
    and gives the change of its log prevalence. So classes in another order give the same answer in that order.
    """

    def __init__(self, group_width: int, statistics: int, *, hidden: int = 32, dense: int = 128) -> None:
        super().__init__()
        self.lstm = nn.LSTM(group_width, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Sequential(
            nn.Linear(2 * hidden + statistics, dense), nn.ReLU(), nn.Dropout(0.2),
            nn.Linear(dense, dense), nn.ReLU(), nn.Dropout(0.2),
        )  # fmt: skip
        self.residual = nn.Linear(dense, 1)
        # The last layer starts at zero, so that training starts from the base estimate itself.
        nn.init.zeros_(self.residual.weight)
        nn.init.zeros_(self.residual.bias)

    def forward(self, groups: Tensor, statistics: Tensor, base: Tensor) -> Tensor:
        """(b, k, g, w), (b, k, s), log prevalences (b, k) -> log prevalences (b, k)."""
        b, k = base.shape
        _, (hidden, _) = self.lstm(groups.flatten(0, 1))  # (2, b k, h)
        embedding = hidden.transpose(0, 1).reshape(b, k, -1)
        change = self.residual(self.head(torch.cat([embedding, statistics], dim=-1))).squeeze(-1)
        return (base + change).log_softmax(dim=-1)
