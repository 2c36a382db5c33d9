"""What runs in the sandbox's own processes: standard library only, loaded by an interpreter of its own.

    zygote      one warm interpreter; forks once per execution
    supervisor  clock, memory, output and the result of one execution
    namespaces, bubblewrap, bare   how a supervisor starts the script's process, one module per level
    worker      takes every right away from itself, then runs the script

Nothing here imports concertino: `zygote.main` is started with `-I`, an empty environment and one socket.
"""
