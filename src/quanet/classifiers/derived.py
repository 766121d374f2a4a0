"""Values computed from the attributes of an object and kept beside it, for as long as it lives.

They are not attributes, so copies, pickles and saved models do not contain them.
"""

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
_KEPT: WeakKeyDictionary[Any, dict[str, tuple[tuple[Any, ...], Any]]] = WeakKeyDictionary()


def derived(owner: object, name: str, sources: tuple[Any, ...], compute: Callable[[], T]) -> T:
    """The result of `compute`, which is called again when one of its sources is another object than before.

    Sources are compared by identity: replace an array instead of writing into it.

    Examples
    --------
    >>> class Owner: ...
    >>> owner, sources = Owner(), ("a", "b")
    >>> derived(owner, "joined", sources, lambda: "".join(sources))
    'ab'
    >>> derived(owner, "joined", sources, lambda: "not called")
    'ab'
    """
    kept = _KEPT.setdefault(owner, {})
    found = kept.get(name)
    if (
        found is None
        or len(found[0]) != len(sources)
        or any(a is not b for a, b in zip(found[0], sources, strict=True))
    ):
        found = kept[name] = sources, compute()
    value: T = found[1]
    return value
