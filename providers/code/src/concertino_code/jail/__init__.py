"""The sandbox's own processes: standard library only, run by an interpreter of their own.

    zygote      one warm interpreter; forks once per execution
    supervisor  clock, memory, output and result of one execution
    namespaces, bubblewrap, bare   how a supervisor starts the script's process, one module per group of levels
    worker      drops every right of its process, then runs the script

Nothing here imports concertino. An interpreter is started with `-I`, an empty environment and `BOOT`, which loads this
folder as the package `concertino_jail`, wherever it lies, and calls `main` of one of its modules.
"""

BOOT = """
import importlib, importlib.util, sys
folder, module, *arguments = sys.argv[1:]
spec = importlib.util.spec_from_file_location(
    "concertino_jail", folder + "/__init__.py", submodule_search_locations=[folder]
)
sys.modules["concertino_jail"] = package = importlib.util.module_from_spec(spec)
spec.loader.exec_module(package)
importlib.import_module("concertino_jail." + module).main(*arguments)
"""
"""The program of an interpreter: `python -I -c BOOT FOLDER MODULE ARGUMENT...`."""
