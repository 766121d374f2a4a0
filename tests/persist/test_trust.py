"""Unknown types are refused with the way out, load when they are trusted, and a class may say what it remembers."""

import io
import json
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler
from sklearn.tree import DecisionTreeClassifier

import quanet
from quanet import CC, EMQ, PACC, PCC, Gaussians, load, save
from quanet.errors import InvalidModel, InvalidSetting
from quanet.persist import trust
from quanet.persist.load import untrusted_types
from quanet.persist.trust import check_trees
from tests.persist.test_save import replace_part

X, CODES = Gaussians(distance=2.0).draw([0.4, 0.6], 60, rng=0)
LABELS = np.array(["no", "yes"])[CODES]


class Nearest(ClassifierMixin, BaseEstimator):
    """A classifier of someone's own: the nearer of two means."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.stack([X[y == label].mean(axis=0) for label in self.classes_])
        return self

    def predict_proba(self, X):
        distances = ((X[:, None] - self.means_) ** 2).sum(axis=-1)
        weights = np.exp(-(distances - distances.min(axis=1, keepdims=True)))
        return weights / weights.sum(axis=1, keepdims=True)


class Halved(PCC):
    """A quantifier of someone's own."""

    def aggregate(self, rows):
        return (super().aggregate(rows) + 1 / len(self.classes_)) / 2


class Network:
    """What a torch module is to us: parameters by name, which vars do not show."""

    __slots__ = ("tensors",)

    def __init__(self, tensors):
        self.tensors = tensors

    def __reduce__(self):
        raise TypeError("a network cannot be pickled")


class Neural(ClassifierMixin, BaseEstimator):
    """A classifier around a network, which says what to remember."""

    def __init__(self, inner=None):
        self.inner = inner

    def fit(self, X, y):
        self.inner_ = LogisticRegression().fit(X, y)
        self.classes_ = self.inner_.classes_
        self.network_ = Network({"head.weight": self.inner_.coef_.astype(np.float32), "head.bias": np.float32([0.5])})
        return self

    def predict_proba(self, X):
        score = X @ self.network_.tensors["head.weight"].T + self.network_.tensors["head.bias"]
        return np.hstack([1 / (1 + np.exp(score)), 1 / (1 + np.exp(-score))])

    def __quanet_state__(self):
        state = dict(vars(self))
        if "network_" in state:
            state["network_"] = self.network_.tensors
        return state

    @classmethod
    def __quanet_restore__(cls, state):
        restored = cls()
        vars(restored).update(state)
        if "network_" in state:
            restored.network_ = Network(state["network_"])
        return restored


class HalfHooked(Nearest):
    def __quanet_state__(self):
        return {}


class BadlyHooked(Nearest):
    def __quanet_state__(self):
        return {1: 2}

    @classmethod
    def __quanet_restore__(cls, state):
        raise AssertionError


class FailsToRestore(Nearest):
    def __quanet_state__(self):
        return {"a": 1}

    @classmethod
    def __quanet_restore__(cls, state):
        raise RuntimeError("no such layer")


class Table:
    """A class of quanet's would-be insides: neither an estimator nor a data class."""

    def __init__(self, values):
        self.values = values


HERE = __name__


@pytest.mark.parametrize("trusted", [[Nearest], [f"{HERE}.Nearest"]], ids=["class", "name"])
@pytest.mark.parametrize(
    "wrap", [lambda one: one, lambda one: make_pipeline(MinMaxScaler(), one)], ids=["bare", "piped"]
)
def test_a_classifier_of_ones_own_is_refused_until_it_is_trusted(trusted, wrap, tmp_path):
    fitted = EMQ(wrap(Nearest())).fit(X, LABELS)
    save(fitted, tmp_path / "model")
    with pytest.raises(
        InvalidModel, match=rf"does not know: {HERE}\.Nearest.* load with trusted=\['{HERE}\.Nearest'\]"
    ):
        load(tmp_path / "model")
    assert untrusted_types(tmp_path / "model") == [f"{HERE}.Nearest"]
    assert f"trusted=['{HERE}.Nearest']" in (tmp_path / "model" / "README.md").read_text()
    loaded = load(tmp_path / "model", trusted=trusted)
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


@pytest.mark.parametrize("trusted", [[Halved], [f"{HERE}.Halved"]], ids=["class", "name"])
def test_a_quantifier_of_ones_own_is_refused_until_it_is_trusted(trusted, tmp_path):
    fitted = Halved().fit(X, LABELS)
    save(fitted, tmp_path / "model")
    with pytest.raises(InvalidModel, match=rf"load with trusted=\['{HERE}\.Halved'\]"):
        load(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model", trusted=trusted).predict(X), fitted.predict(X))


@pytest.mark.parametrize(
    "wrap",
    [lambda one: one, FrozenEstimator, lambda one: make_pipeline(MinMaxScaler(), one)],
    ids=["bare", "frozen", "piped"],
)
def test_a_network_comes_back_by_its_own_account(wrap, tmp_path):
    classifier = wrap(Neural(inner=None))
    if isinstance(classifier, FrozenEstimator):
        classifier = FrozenEstimator(Neural().fit(X, LABELS))
    fitted = PACC(classifier).fit(X, LABELS)
    save(fitted, tmp_path / "model")
    loaded = load(tmp_path / "model", trusted=[Neural])
    np.testing.assert_array_equal(loaded.represent(X), fitted.represent(X))
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


def test_a_plain_class_that_is_listed_comes_back_by_its_attributes(tmp_path, monkeypatch):
    monkeypatch.setitem(trust.PARTS, "Table", HERE)
    fitted = CC("precomputed").fit(np.eye(2), ["a", "b"])
    fitted.tables_ = [Table(np.arange(3.0)), fitted.classifier_]
    trust.known.cache_clear()
    try:
        save(fitted, tmp_path / "model")
        loaded = load(tmp_path / "model")
    finally:
        monkeypatch.undo()
        trust.known.cache_clear()
    assert type(loaded.tables_[0]) is Table
    np.testing.assert_array_equal(loaded.tables_[0].values, np.arange(3.0))
    assert loaded.tables_[1] is loaded.classifier_


def test_half_a_pair_of_hooks_is_an_error(tmp_path):
    with pytest.raises(InvalidSetting, match="needs both"):
        save(EMQ(HalfHooked()).fit(X, LABELS), tmp_path / "model")


def test_hooks_that_fail_are_named(tmp_path):
    with pytest.raises(InvalidSetting, match="keys that are not strings"):
        save(EMQ(FrozenEstimator(BadlyHooked().fit(X, LABELS))).fit(X, LABELS), tmp_path / "model")
    save(FailsToRestore().fit(X, LABELS), tmp_path / "model")
    with pytest.raises(InvalidModel, match=r"FailsToRestore cannot be restored: .*no such layer"):
        load(tmp_path / "model", trusted=[FailsToRestore])


def test_what_cannot_be_saved_is_named_with_the_way_out(tmp_path):
    fitted = CC("precomputed").fit(np.eye(2), ["a", "b"])
    fitted.network_ = Network({})
    with pytest.raises(InvalidSetting, match=r"network_ is a .*Network, which cannot be saved.*__quanet_state__"):
        save(fitted, tmp_path / "model")
    fitted.network_ = np.zeros(2, dtype=[("a", float)])
    with pytest.raises(InvalidSetting, match="network_ is an array of"):
        save(fitted, tmp_path / "model")
    fitted.network_ = fitted
    with pytest.raises(InvalidSetting, match="network_ contains itself"):
        save(fitted, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_lambda_is_refused_when_it_is_saved(tmp_path):
    piped = make_pipeline(FunctionTransformer(lambda X: 2 * X), LogisticRegression())
    with pytest.raises(InvalidSetting, match="which no module has under that name"):
        save(EMQ(piped).fit(X, LABELS), tmp_path / "model")


def test_trees_of_neighbours_need_trust(tmp_path):
    fitted = EMQ(KNeighborsClassifier()).fit(X, LABELS)
    save(fitted, tmp_path / "model")
    with pytest.raises(InvalidModel, match=r"sklearn\.neighbors\._kd_tree\.KDTree"):
        load(tmp_path / "model")
    loaded = load(tmp_path / "model", trusted=untrusted_types(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


@pytest.mark.parametrize("trusted", ["a.b", Nearest])
def test_trusted_is_a_list(trusted, tmp_path):
    save(EMQ().fit(X, LABELS), tmp_path / "model")
    with pytest.raises(InvalidSetting, match="must be a list of types"):
        load(tmp_path / "model", trusted=trusted)


def test_a_trusted_name_without_a_class_is_refused():
    for name, match in [("no.such.module.Class", "cannot be imported"), (f"{HERE}.X", "is not a class")]:
        with pytest.raises(InvalidModel, match=match):
            trust.Trust([name]).class_of(name)
    with pytest.raises(InvalidModel, match="is not trusted"):
        trust.Trust([]).class_of("os.system")
    with pytest.raises(InvalidModel, match="Nearest are not trusted"):
        trust.Trust([]).load_part(skops.io.dumps(Nearest()))


def hostile(module, name, loader="ConstructorFromReduceNode"):
    """A skops archive that asks for a call: name("touched"), in that module."""
    argument = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": '"touched"'}
    arguments = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode", "content": [argument]}
    schema = {"__class__": name, "__module__": module, "__loader__": loader, "content": arguments, "protocol": 2}
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("schema.json", json.dumps(schema))
    return data.getvalue()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "mkdir"),
        ("numpy.testing", "runstring"),
        ("sklearn.utils._testing", "raises"),
        ("quanet", "load"),
        ("quanet.persist.trust", "import_module"),
        ("tests.persist.not_there", "EMQ"),
    ],
)
def test_a_call_in_an_archive_is_refused_and_not_made(module, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(EMQ().fit(X, LABELS), "model")
    replace_part(tmp_path / "model", "part-0.skops", hostile(module, name))
    with pytest.raises(InvalidModel, match=rf"does not know: .*{module}\.{name}"):
        load("model")
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("content", [b"PK", b"", b"PK\x05\x06" + bytes(18)])
def test_an_archive_that_is_none_is_refused(content, tmp_path):
    save(EMQ().fit(X, LABELS), tmp_path / "model")
    replace_part(tmp_path / "model", "part-0.skops", content)
    with pytest.raises(InvalidModel, match="not a readable skops archive"):
        load(tmp_path / "model")


def damaged(tree, field, value):
    """The same decision tree with a first node that points elsewhere."""
    state = tree.__getstate__()
    state["nodes"] = state["nodes"].copy()
    state["nodes"][field][0] = value
    tree.__setstate__(state)


@pytest.mark.parametrize(
    ("field", "value"), [("left_child", 0), ("right_child", 10**6), ("feature", 99), ("feature", -1)]
)
@pytest.mark.parametrize(
    ("classifier", "tree"),
    [
        (DecisionTreeClassifier(), lambda fitted: fitted.tree_),
        (RandomForestClassifier(3, random_state=0), lambda fitted: fitted.estimators_[1].tree_),
        (GradientBoostingClassifier(n_estimators=3), lambda fitted: fitted.estimators_[2, 0].tree_),
    ],
    ids=["tree", "forest", "boosting"],
)
def test_a_tree_that_points_outside_is_refused(classifier, tree, field, value):
    fitted = classifier.fit(X, LABELS)
    check_trees(fitted)
    damaged(tree(fitted), field, value)
    with pytest.raises(InvalidModel, match="a decision tree"):
        trust.Trust([]).load_part(skops.io.dumps(fitted))


@pytest.mark.parametrize(("field", "value"), [("left", 0), ("right", 10**6), ("feature_idx", 99), ("bitset_idx", 50)])
def test_a_histogram_tree_that_points_outside_is_refused(field, value):
    X_categories = np.hstack([np.round(X % 5), X])
    fitted = HistGradientBoostingClassifier(max_iter=2, categorical_features=[0, 1], min_samples_leaf=2)
    fitted.fit(X_categories, LABELS)
    check_trees(fitted)
    nodes = fitted._predictors[0][0].nodes
    nodes[field][0] = value
    nodes["is_categorical"][0] = 1
    with pytest.raises(InvalidModel, match="a decision tree"):
        check_trees(fitted)


def test_every_class_of_quanet_that_is_fitted_can_be_named():
    for name in quanet.__all__:
        value = getattr(quanet, name)
        if isinstance(value, type) and issubclass(value, BaseEstimator):
            assert trust.name_of(value) == name
    for name in trust.PARTS:
        assert trust.name_of(trust.known(name)) == name
