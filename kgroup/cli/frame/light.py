"""A package whose `__init__` imports more than most users want, left until something of it is asked for."""

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType


def leave_for_later(name: str) -> None:
    """Have `import name.part` import that part alone; the first attribute asked of `name` imports the rest.

    Nothing is changed for who comes later: it is the same module, and complete before it answers.
    """
    spec = None if name in sys.modules else find_spec(name)
    if spec is None or spec.loader is None or spec.submodule_search_locations is None:
        return
    loader, module = spec.loader, ModuleType(name)
    module.__spec__, module.__loader__, module.__file__ = spec, loader, spec.origin
    module.__path__ = spec.submodule_search_locations

    def rest(attribute: str) -> object:
        # `from . import part`, within the package itself, asks the package for its part.
        if find_spec(f"{name}.{attribute}") is not None:
            return import_module(f"{name}.{attribute}")
        del module.__dict__["__getattr__"]
        loader.exec_module(module)
        return getattr(module, attribute)

    module.__dict__["__getattr__"] = rest
    sys.modules[name] = module
