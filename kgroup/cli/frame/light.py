"""A package whose `__init__` imports far more than its parts need: a start of the command line skips it."""

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType


def leave_for_later(name: str) -> None:
    """Let `import name.part` import that part alone; the first other attribute of `name` imports the rest.

    Later importers get the same module, complete.
    """
    spec = None if name in sys.modules else PathFinder.find_spec(name)
    if spec is None or spec.loader is None:
        return
    loader, path, module = spec.loader, spec.submodule_search_locations, ModuleType(name)

    def rest(attribute: str) -> object:
        # `from . import part`, in the package itself.
        if PathFinder.find_spec(f"{name}.{attribute}", path):
            return import_module(f"{name}.{attribute}")
        del vars(module)["__getattr__"]
        loader.exec_module(module)
        return getattr(module, attribute)

    vars(module).update(
        __spec__=spec, __loader__=loader, __file__=spec.origin, __path__=path, __getattr__=rest
    )
    module.__package__ = name
    sys.modules[name] = module
