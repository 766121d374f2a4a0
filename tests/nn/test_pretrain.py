"""Training the shipped network, and the check of its weights."""

import json
from dataclasses import replace
from itertools import islice

import pytest
import torch

from quanet.nn import pretrain
from quanet.nn.pretrain import (
    PretrainingRecipe,
    batches,
    draw_batch,
    losses,
    main,
    read_scores,
    shipped_network,
    train,
)
from quanet.nn.share_network import ShareNetwork
from quanet.nn.share_reader import WEIGHTS
from quanet.nn.simulator import Prior, Simulator, TaskScores


@pytest.fixture
def quick(monkeypatch):
    """Small tasks and a small network."""
    monkeypatch.setattr(pretrain, "SMALL", ((0.5, 30, 40), (0.5, 40, 60)))
    return PretrainingRecipe(
        steps=12,
        batch=24,
        valid=48,
        chunk=1,
        chunks=2,
        reuse=2,
        warm_up=2,
        network={"width": 16, "layers": 1, "heads": 2},
    )


def test_training_lowers_the_surprise(quick):
    # An untrained network returns its base.
    reports = list(train(replace(quick, steps=40, lr=1e-2), "cpu", every=4))
    assert [report["step"] for report in reports] == list(range(4, 41, 4))
    assert reports[-1]["network"] < reports[0]["network"] < reports[0]["base"]


def test_a_stopped_run_resumes_from_its_checkpoint(quick, tmp_path):
    whole = list(train(quick, "cpu", every=4))
    list(islice(train(quick, "cpu", checkpoint=tmp_path / "half.pt", every=4), 1))
    rest = list(train(quick, "cpu", checkpoint=tmp_path / "half.pt", every=4))
    assert [report["step"] for report in rest] == [8, 12]
    # Tasks are drawn from the generator's kept state.
    assert rest[-1]["network"] == pytest.approx(whole[-1]["network"], rel=1e-6)


def test_a_stage_may_start_from_the_weights_of_another(quick):
    first = ShareNetwork(**quick.network)
    with torch.no_grad():
        first.leave.bias[:] = 0.25
    report = next(train(replace(quick, lr=0.0, steps=1), "cpu", start_from=first.state_dict()))
    torch.testing.assert_close(report["network_"].state_dict(), first.state_dict())


def test_other_tasks_may_be_mixed_in(quick):
    drawn = []

    def others(generator, number):
        drawn.append(number)
        return Simulator(generator, Prior(fitted=0.0)).small(number, 40, 60)

    assert len(list(train(replace(quick, steps=2), "cpu", others=others, every=2))) == 1
    assert drawn == [12, 12]


def test_each_task_is_seen_as_often_as_the_recipe_says(quick):
    simulator = Simulator(torch.Generator("cpu").manual_seed(3))
    seen = [batch.base for batch in batches(replace(quick, steps=8), simulator, None, 0)]
    assert [len(base) for base in seen] == [24] * 8
    # With its classes in either order: the rarer of two mirrored values identifies a task.
    keys = torch.cat(seen)[:, [0, -1]].sort(dim=1).values
    for block in (keys[:96], keys[96:]):
        assert torch.unique(block, dim=0, return_counts=True)[1].tolist() == [2] * 48


def test_swapped_classes_are_read_as_if_they_had_been_drawn_so():
    drawn = Simulator(torch.Generator("cpu").manual_seed(5)).small(40, 60, 90)
    mirrored = TaskScores(-drawn.scores, drawn.counts[:, [1, 0, 2]], 1 - drawn.share)
    for found, right in zip(read_scores(drawn).swapped().parts(), read_scores(mirrored).parts(), strict=True):
        torch.testing.assert_close(found, right, atol=5e-3, rtol=1e-3)
    again = read_scores(drawn).swapped().swapped()
    for found, right in zip(again.parts(), read_scores(drawn).parts(), strict=True):
        torch.testing.assert_close(found, right)


def test_a_prior_without_large_problems_has_as_many_tasks():
    batch = draw_batch(Simulator(torch.Generator("cpu").manual_seed(0), Prior(large=False)), 20)
    assert len(batch.share) == 20


def test_the_shipped_weights_are_those_that_were_recorded(capsys):
    assert main(["--check"]) == 0
    assert "recorded" in capsys.readouterr().out
    assert WEIGHTS.stat().st_size < 2 * 2**20


def test_other_weights_are_noticed(tmp_path, monkeypatch, capsys):
    record = json.loads(pretrain.RECORD.read_text())
    record["sha256"] = "0" * 64
    record["losses"]["network"] += 0.1
    (tmp_path / "record.json").write_text(json.dumps(record))
    monkeypatch.setattr(pretrain, "RECORD", tmp_path / "record.json")
    assert main(["--check"]) == 1
    shown = capsys.readouterr().out
    assert "hash" in shown
    assert "network is" in shown


def test_a_new_record_says_how_the_weights_were_made(tmp_path, monkeypatch):
    before = json.loads(pretrain.RECORD.read_text())
    monkeypatch.setattr(pretrain, "RECORD", tmp_path / "record.json")
    assert main(["--record"]) == 0
    found = json.loads((tmp_path / "record.json").read_text())
    assert found["sha256"] == before["sha256"]
    assert [stage["command"] for stage in found["made by"]] == [stage["command"] for stage in before["made by"]]
    assert main([]) == 2


def test_losses_of_the_base_alone_are_those_of_an_untrained_network():
    batch = draw_batch(Simulator(torch.Generator("cpu").manual_seed(1)), 40)
    found = losses(ShareNetwork(), batch)
    assert found["network"] == pytest.approx(found["base"], abs=1e-5)
    assert losses(shipped_network(), batch)["network"] < found["base"]
