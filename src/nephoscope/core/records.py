"""The decorator `dataclass`, whose classes compile their methods when one of them is first called.

A command defines some 250 data classes and makes instances of a quarter of them. The standard
decorator compiles six methods for each class, 0.5 ms together, which would be a fifth of the time of
a short command. Fields, slots, matching and the compiled methods are those of `dataclasses`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # Static checkers treat the standard decorator alone as what it is.
    from dataclasses import dataclass as dataclass
else:
    _METHODS = ("__init__", "__repr__", "__eq__", "__hash__")
    _OWN = frozenset({*_METHODS, "__setattr__", "__delattr__", "__getstate__", "__setstate__"})
    _POSTPONABLE = frozenset({"frozen", "slots", "kw_only"})

    def dataclass(cls=None, /, **options):
        """Returns the class as a data class; options are those of `dataclasses.dataclass`.

        Classes that inherit fields or define a method that the standard decorator would write get
        all of them at once, as do those with options besides `frozen`, `slots` and `kw_only`.
        """

        def decorate(cls):
            inherits = any(hasattr(base, "__dataclass_fields__") for base in cls.__mro__[1:])
            if inherits or _OWN & vars(cls).keys() or options.keys() - _POSTPONABLE:
                return dataclasses.dataclass(**options)(cls)
            return _postpone(cls, **options)

        return decorate if cls is None else decorate(cls)

    def _postpone(cls, *, frozen=False, slots=False, kw_only=False):
        documented = cls.__doc__
        cls.__doc__ = documented or cls.__name__  # else its signature, which needs __init__
        cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(
            cls
        )
        cls.__doc__ = documented
        cls.__dataclass_params__.init = True
        cls.__dataclass_params__.repr = cls.__dataclass_params__.eq = True
        cls.__dataclass_params__.frozen = frozen
        for name in _METHODS[: 4 if frozen else 3]:
            setattr(cls, name, _compiling(cls, name))
        if not frozen:
            cls.__hash__ = None
            return cls
        _freeze(cls, frozenset(cls.__dataclass_fields__))
        if slots:
            cls.__getstate__, cls.__setstate__ = _state, _set_state
        return cls

    def _compiling(cls, name):
        def method(self, *arguments, **named):
            _compile(cls)
            return getattr(cls, name)(self, *arguments, **named)

        return method

    def _compile(cls):
        """Takes the methods of a standard data class of the same fields."""
        fields = dataclasses.fields(cls)
        body = {field.name: field for field in fields}
        body |= {"__annotations__": {field.name: field.type for field in fields}}
        body |= {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": "-"}
        if hasattr(cls, "__post_init__"):
            body["__post_init__"] = cls.__post_init__
        frozen = cls.__dataclass_params__.frozen
        twin = dataclasses.dataclass(frozen=frozen, match_args=False)(type(cls.__name__, (), body))
        for name in _METHODS:
            setattr(cls, name, getattr(twin, name))

    def _freeze(cls, names):
        def __setattr__(self, name, value):  # noqa: N807
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
            super(cls, self).__setattr__(name, value)

        def __delattr__(self, name):  # noqa: N807
            if type(self) is cls or name in names:
                raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
            super(cls, self).__delattr__(name)

        cls.__setattr__, cls.__delattr__ = __setattr__, __delattr__

    def _state(self):
        return [getattr(self, field.name) for field in dataclasses.fields(self)]

    def _set_state(self, values):
        for field, value in zip(dataclasses.fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)
