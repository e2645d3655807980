"""Found first on the path of a judged run: installs the switch, then runs the sitecustomize that it hides."""

import importlib.machinery
import importlib.util
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
if os.environ.get("CODEGEN_PROOF"):
    import codegen_proof_switch

    codegen_proof_switch.install()

_others = [each for each in sys.path if os.path.abspath(each or ".") != _here]
_hidden = importlib.machinery.PathFinder.find_spec("sitecustomize", _others)
if _hidden is not None and _hidden.loader is not None:
    _module = importlib.util.module_from_spec(_hidden)
    _hidden.loader.exec_module(_module)
