"""Forward passes: shapes and equations only."""

from functools import reduce

import torch
from torch import Tensor, nn

from quanet.arrays import IntArray

SHARPNESS = 100.0  # of the softplus that keeps a set network's linear estimate positive


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
        return self._prevalence(hidden.transpose(0, 1).flatten(1), statistics)

    def of_shared_rows(self, table: Tensor, order: Tensor, statistics: Tensor) -> Tensor:
        """Many bags of rows of a table (m, 1 + e) with these numbers (b, n), sorted, and (b, 8) -> (b, 2).

        The same as `forward`, but every row of the table is multiplied once and not once for each bag that has it.
        """
        ends = [self._last_state(table, order, ""), self._last_state(table, order.flip(1), "_reverse")]
        return self._prevalence(torch.cat(ends, dim=1), statistics)

    def _last_state(self, table: Tensor, order: Tensor, direction: str) -> Tensor:
        """The state (b, h) of one direction of the LSTM after the last row."""
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        from_row, from_state, *biases = (getattr(self.lstm, name + direction) for name in names)
        of_rows = table @ from_row.T + sum(biases)
        state = memory = table.new_zeros(len(order), self.lstm.hidden_size)
        for rows in order.T:
            let_in, keep, new, show = torch.addmm(of_rows[rows], state, from_state.T).chunk(4, dim=1)
            memory = keep.sigmoid() * memory + let_in.sigmoid() * new.tanh()
            state = show.sigmoid() * memory.tanh()
        return state

    def _prevalence(self, embedding: Tensor, statistics: Tensor) -> Tensor:
        prevalence: Tensor = self.head(torch.cat([embedding, statistics], dim=-1)).softmax(dim=-1)
        return prevalence


class SetNetwork(nn.Module):
    r"""Bag of rows to log prevalences: what every instance shows is pooled over the bag; any number of classes.

    It reads whole rows, so it can learn which classes the classifier confuses. With the pooled description d and the
    mean posterior m of a bag,

    .. math:: \log p = \log \text{softplus}(A\, [d, m]) + \text{head}(d) + \text{const}

    A mean over a bag is linear in the prevalences, so a linear map A finds them up to sampling error; it starts at the
    mean posterior. The dense head learns what is not linear; its last layer starts at zero.

    Parameters
    ----------
    k : number of classes.
    embedding : e, columns of a row after the posteriors.
    show : what an instance shows, from its features: (..., features) -> (..., shown).
    features, shown : widths before and after it.
    pooling : "mean" or "max" over the instances.
    dropout : share of the embeddings' numbers that a training step leaves out.
    hidden, dense : widths of the layers before `features` and of the head.

    Examples
    --------
    >>> rows = torch.cat([torch.full((2, 5, 3), 1 / 3), torch.rand(2, 5, 4)], dim=-1)
    >>> SetNetwork(3, 4, nn.ReLU(), 8, 8)(rows).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        k: int,
        embedding: int,
        show: nn.Module,
        features: int,
        shown: int,
        *,
        pooling: str = "mean",
        dropout: float = 0.5,
        hidden: int = 64,
        dense: int = 128,
    ) -> None:
        super().__init__()
        self.k = k
        self.pooling = pooling
        # Read whole, the few instances of a rare class would be memorised by their embeddings.
        self.thin = nn.Dropout(dropout)
        self.widest = max(2 * k + embedding, hidden, shown)  # numbers held of an instance, at most
        self.first = nn.Linear(2 * k + embedding, hidden)
        nn.init.zeros_(self.first.weight[:, 2 * k :])  # posteriors are read from the start, embeddings where they help
        self.encode = nn.Sequential(nn.ReLU(), nn.Linear(hidden, features), show)
        self.linear = nn.Linear(shown + k, k)
        # No dropout in the head: its noise would be larger than the errors that are left to correct.
        self.head = nn.Sequential(nn.Linear(shown, dense), nn.ReLU(), nn.Linear(dense, dense), nn.ReLU())
        self.last = nn.Linear(dense, k)
        with torch.no_grad():
            self.linear.weight.zero_()[:, shown:] = torch.eye(k)
            for start in (self.linear.bias, self.last.weight, self.last.bias):
                start.zero_()

    def forward(self, rows: Tensor, at_a_time: int | None = None) -> Tensor:
        """(b, n, k + e) -> log prevalences (b, k); no more than `at_a_time` instances of a bag are held at once."""
        pooled = self.pool(rows, at_a_time or rows.shape[1])
        linear = self.linear(torch.cat([pooled, rows[..., : self.k].mean(dim=1)], dim=-1))
        # A softplus that bends within a few hundredths of zero, so that no prevalence is negative.
        positive = nn.functional.softplus(linear, beta=SHARPNESS) + 1e-5
        return (positive.log() + self.last(self.head(pooled))).log_softmax(dim=-1)

    @torch.no_grad()
    def reorder(self, order: IntArray) -> None:
        """Rearrange the weights in place, for data whose c-th class is the one that was at `order[c]`, (k,)."""
        chosen, k = torch.as_tensor(order), self.k
        read, linear, last = self.first, self.linear, self.last
        shown = linear.in_features - k
        for weight, start in ((read.weight, 0), (read.weight, k), (linear.weight, shown)):
            weight[:, start : start + k] = weight[:, start + chosen]
        for rows in (linear.weight, linear.bias, last.weight, last.bias):
            rows.copy_(rows[chosen])

    def pool(self, rows: Tensor, at_a_time: int) -> Tensor:
        """(b, n, k + e) -> (b, shown)."""
        n = rows.shape[1]
        parts = (self.shown_by(rows[:, start : start + at_a_time]) for start in range(0, n, at_a_time))
        if self.pooling == "max":
            return reduce(torch.maximum, (part.amax(dim=1) for part in parts))
        return reduce(torch.add, (part.sum(dim=1) for part in parts)) / n

    def shown_by(self, rows: Tensor) -> Tensor:
        """(b, n, k + e) -> (b, n, shown)."""
        posteriors = rows[..., : self.k]
        # Log-odds tell near-certain instances apart; clipped, so that none outweighs all the others.
        odds = posteriors.logit(eps=1e-4) / 4
        shown: Tensor = self.encode(self.first(torch.cat([posteriors, odds, self.thin(rows[..., self.k :])], dim=-1)))
        return shown


class Histograms(nn.Module):
    """Where each feature lies among equal bins from 0 to 1: its unit is shared by the two nearest centres.

    The mean over a bag is a histogram of every feature, and its slope in the feature is piecewise constant.

    Examples
    --------
    >>> Histograms(3)(torch.tensor([0.0, 0.0, 1.0986])).reshape(3, 3)[-1]  # of sigmoid(1.0986) = .75
    tensor([0.0000, 0.5000, 0.5000])
    """

    def __init__(self, bins: int) -> None:
        super().__init__()
        self.bins = bins

    def forward(self, features: Tensor) -> Tensor:
        """(..., f) -> (..., f * bins)."""
        place = features.sigmoid().unsqueeze(-1) * (self.bins - 1)
        centres = torch.arange(self.bins, dtype=place.dtype, device=place.device)
        return (1 - (place - centres).abs()).clamp(min=0).flatten(-2)


class GaussianLikelihoods(nn.Module):
    r"""How likely an instance is under each of several Gaussians of the latent space, relative to their peaks.

    .. math:: \exp\left(-\tfrac12 \lVert L_j (z - \mu_j) \rVert^2\right), \quad z = \text{sigmoid of the features}

    The lower-triangular :math:`L_j`, of positive diagonal, is the Cholesky factor of the j-th Gaussian's precision.
    """

    def __init__(self, features: int, gaussians: int) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.rand(gaussians, features))
        # Standard deviations of about 1/7 of the cube's side: wider than the gaps between centres.
        self.log_diagonal = nn.Parameter(torch.full((gaussians, features), 2.0))
        self.below = nn.Parameter(torch.zeros(gaussians, features, features))

    def forward(self, features: Tensor) -> Tensor:
        """(..., f) -> (..., gaussians)."""
        factors = self.below.tril(-1) + torch.diag_embed(self.log_diagonal.exp())
        gaussians, width, _ = factors.shape
        # One product for all Gaussians: L (z - mu) = L z - L mu.
        scaled = features.sigmoid() @ factors.flatten(0, 1).T
        shift = (factors @ self.centres.unsqueeze(-1)).flatten()
        distance = (scaled - shift).reshape(*features.shape[:-1], gaussians, width).square().sum(dim=-1)
        return (-distance / 2).exp()
