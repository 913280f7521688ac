"""The decorator `dataclass`, whose classes compile their `__init__` when it is first called.

A command defines some 200 data classes and makes instances of half of them. The standard decorator
compiles six methods for each, 0.5 ms together, which would be a fifth of the time of a short
command. Fields, slots, matching and what the methods do are as in `dataclasses`.
"""

from __future__ import annotations

import dataclasses
import reprlib
from operator import attrgetter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # Static checkers treat the standard decorator alone as what it is.
    from dataclasses import dataclass as dataclass
else:
    _METHODS = ("__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__")
    _OWN = frozenset({*_METHODS, "__getstate__", "__setstate__"})
    _POSTPONABLE = frozenset({"frozen", "slots", "kw_only"})
    _FACTORY = object()
    _MISSING = dataclasses.MISSING

    def dataclass(cls=None, /, **options):
        """Returns the class as a data class; options are those of `dataclasses.dataclass`.

        The standard decorator makes classes that inherit fields, define a method that it would
        write, or have options besides `frozen`, `slots` and `kw_only`.
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
        params = cls.__dataclass_params__
        params.init = params.repr = params.eq = True
        params.frozen = frozen
        _compare(cls, hashable=frozen)
        cls.__init__ = _compiling(cls)
        if frozen:
            _freeze(cls, frozenset(cls.__dataclass_fields__))
            if slots:
                cls.__getstate__, cls.__setstate__ = _state, _set_state
        return cls

    def _compare(cls, *, hashable):
        fields = dataclasses.fields(cls)
        repr_names = [field.name for field in fields if field.repr]
        compared = _values_of([field.name for field in fields if field.compare])
        hashed = [field.name for field in fields if _is_hashed(field)]

        @reprlib.recursive_repr()
        def __repr__(self):  # noqa: N807
            values = ", ".join(f"{name}={getattr(self, name)!r}" for name in repr_names)
            return f"{self.__class__.__qualname__}({values})"

        def __eq__(self, value):  # noqa: N807
            if value.__class__ is self.__class__:
                return compared(self) == compared(value)
            return NotImplemented

        cls.__repr__, cls.__eq__, cls.__hash__ = __repr__, __eq__, None
        if hashable:
            values = _values_of(hashed)
            cls.__hash__ = lambda self: hash(values(self))

    def _is_hashed(field):
        return field.compare if field.hash is None else field.hash

    def _values_of(names):
        if len(names) > 1:
            return attrgetter(*names)
        return lambda self: tuple(getattr(self, name) for name in names)

    def _compiling(cls):
        def __init__(self, *arguments, **named):  # noqa: N807
            cls.__init__ = _initialiser(cls)
            cls.__init__(self, *arguments, **named)

        return __init__

    def _initialiser(cls):
        every = [field for field in cls.__dataclass_fields__.values() if field.init]
        by_position = [field for field in every if not field.kw_only]
        by_name = [field for field in every if field.kw_only]
        scope = {"_FACTORY": _FACTORY, "_set": object.__setattr__}
        words = [_argument(field, scope) for field in by_position]
        words += ["*"] * bool(by_name) + [_argument(field, scope) for field in by_name]
        set_field = (
            "_set(self, {0!r}, {1})" if cls.__dataclass_params__.frozen else "self.{0} = {1}"
        )
        lines = [
            set_field.format(field.name, value)
            for field in dataclasses.fields(cls)
            if (value := _value(field, scope))
        ]
        lines += ["self.__post_init__()"] * hasattr(cls, "__post_init__")
        body = "\n  ".join(lines) or "pass"
        exec(f"def __init__(self, {', '.join(words)}):\n  {body}", scope)
        made = scope["__init__"]
        made.__qualname__ = f"{cls.__qualname__}.__init__"
        return made

    def _argument(field, scope):
        if field.default is not _MISSING:
            scope[f"_default_{field.name}"] = field.default
            return f"{field.name}=_default_{field.name}"
        return field.name if field.default_factory is _MISSING else f"{field.name}=_FACTORY"

    def _value(field, scope):
        """Returns the expression that a field is set to; '' where it keeps the class's value."""
        if field.default_factory is not _MISSING:
            scope[f"_make_{field.name}"] = field.default_factory
            made = f"_make_{field.name}()"
            return f"{made} if {field.name} is _FACTORY else {field.name}" if field.init else made
        if field.init:
            return field.name
        if field.default is _MISSING:
            return ""
        scope[f"_default_{field.name}"] = field.default
        return f"_default_{field.name}"

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
