"""Settings are declared once: every surface has the same options, defaults and checks."""

import inspect
from dataclasses import dataclass, fields

import pytest
import typer
from pydantic import ValidationError
from typer.testing import CliRunner

import quanet.ray
import quanet.spark
from quanet.cli.main import app
from quanet.cli.options import command
from quanet.data.settings import (
    LARGEST_SEED,
    ClusteredReading,
    Estimation,
    Level,
    Naming,
    Reading,
    Seed,
    Settings,
    TableFormat,
    TableReading,
    flag_of,
    setting,
    with_settings,
)
from quanet.errors import InvalidSetting
from quanet.serve.web.api_requests import ProjectSettings
from quanet.serve.work.read_options import ReadOptions


@pytest.mark.parametrize("kind", [ClusteredReading, Estimation, Naming])
def test_a_command_has_an_option_for_every_field(kind):
    options = {flag for one in typer.main.get_command(app).commands["predict"].params for flag in one.opts}
    assert {flag_of(one) for one in fields(kind)} <= options


@pytest.mark.parametrize("predict", [quanet.ray.predict, quanet.spark.predict])
def test_a_function_has_a_keyword_for_every_field(predict):
    parameters = inspect.signature(predict).parameters
    for kind in (TableReading, Estimation):
        for one in fields(kind):
            assert parameters[one.name].default == one.default
            assert parameters[one.name].kind is inspect.Parameter.KEYWORD_ONLY


def test_the_service_has_every_setting_of_reading_and_estimation():
    for kind in (Reading, Level, Seed, Naming):
        for one in fields(kind):
            assert ProjectSettings.model_fields[one.name].description == one.metadata["help"]
            assert getattr(ReadOptions(), one.name) == one.default


def test_the_service_accepts_no_setting_that_it_does_not_use():
    """Its intervals always include drift."""
    with pytest.raises(ValidationError, match="drift"):
        ProjectSettings(drift=False)


def test_a_new_field_is_an_option_a_keyword_and_part_of_the_shown_command():
    @dataclass(frozen=True, kw_only=True)
    class Kitchen(Settings):
        salt: float = setting("Grams of salt.", 1.5)
        herbs: tuple[str, ...] = setting("Herbs.", (), separated=True)
        hot: bool = setting("Serve it cold.", default=True, flag="--no-heat")

    told = []

    def cook(kitchen: Kitchen) -> None:
        """Cook."""
        told.append(kitchen)

    typed = typer.Typer()
    typed.command()(command(cook))
    arguments = ["--salt", "2", "--herbs", "dill, mint", "--no-heat"]
    assert CliRunner().invoke(typed, arguments).exit_code == 0
    with_settings(cook)(salt=2.0, herbs=("dill", "mint"), hot=False)
    assert told[0] == told[1] == Kitchen(salt=2.0, herbs=("dill", "mint"), hot=False)
    assert told[0].given("salt", "herbs", "hot") == ["--salt", "2.0", "--herbs", "dill,mint", "--no-heat"]
    assert Kitchen().given("salt", "herbs", "hot") == []


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (Level, "level", 1.0),
        (Seed, "seed", -1),
        (Seed, "seed", LARGEST_SEED + 1),
        (Seed, "seed", 1.5),
        (TableFormat, "encoding", "latin-99"),
        (TableFormat, "delimiter", ";;"),
        (TableFormat, "date_format", "%Q"),
        (TableReading, "by", ("date:fortnight",)),
        (Naming, "names", ("negative",)),
    ],
)
def test_an_invalid_value_is_one_error_that_names_its_setting(kind, name, value):
    with pytest.raises(InvalidSetting) as caught:
        kind(**{name: value})
    assert caught.value.setting == name
    with pytest.raises(ValidationError, match=rf"\n{name}\b"):
        ProjectSettings(**{name: list(value) if isinstance(value, tuple) else value})


def test_one_text_may_hold_several_names_and_one_key_may_stand_alone():
    assert TableReading(features=["rooms, price"], by="product") == TableReading(
        features=("rooms", "price"), by=("product",)
    )


def test_settings_that_a_function_does_not_have_are_errors():
    with pytest.raises(TypeError, match="cluster"):
        quanet.spark.predict(None, "model", cluster="author")
