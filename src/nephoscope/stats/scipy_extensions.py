"""Single functions of SciPy's compiled modules, without the packages around them.

The import of `scipy.signal` or `scipy.optimize` takes half a second, and the function that is
needed is in one extension module of it.
"""

from __future__ import annotations

from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any


@cache
def compiled(package: str, module: str, name: str) -> Any:
    """Returns a function of an extension module of a package of SciPy; None where there is none.

    The caller then imports the package as usual.
    """
    scipy = find_spec("scipy")
    if scipy is None or scipy.origin is None:
        return None
    folder = Path(scipy.origin).parent / package
    spec = FileFinder(str(folder), (ExtensionFileLoader, EXTENSION_SUFFIXES)).find_spec(module)
    if spec is None or spec.loader is None:
        return None
    try:
        loaded = module_from_spec(spec)
        spec.loader.exec_module(loaded)
    except ImportError:
        return None
    return getattr(loaded, name, None)
