"""What each level does not hold, by design: the attacks that reach something there, and what it amounts to.

The page about levels shows this table, and the tests of the attacks allow nothing else.
"""

from __future__ import annotations

_OWN_INIT = "process 1 of the jail has the script's user; it holds nothing but the exit status"
_NO_QUOTA = "an ordinary folder has no bound on bytes and number of files"
_NO_INODES = "bwrap has no bound on the number of files"
_SHARED_COUNT = "the bound of processes counts those of other scripts too"

KNOWN_GAPS: dict[str, dict[str, str]] = {
    "namespaces": {},
    "bubblewrap": {
        "own_inode_bomb": _NO_INODES,
        "own_links_bomb": _NO_INODES,
        "own_tmpfs_bomb": "three folders of the full size",
        "own_device_files": "/dev has terminals, of the jail's own",
        "own_init_memory": _OWN_INIT,
        "own_oom_score": _OWN_INIT,
    },
    "landlock": {
        "own_ssh_and_docker": "a script can see that a file exists, and its size and times",
        "own_unix_in_own_folder": "sockets come in pairs only",
        "own_tmpfs_bomb": _NO_QUOTA,
        "own_inode_bomb": _NO_QUOTA,
        "own_links_bomb": _NO_QUOTA,
        "own_fork_bomb": _SHARED_COUNT,
        "own_thread_bomb": _SHARED_COUNT,
        "own_memory_forked": _SHARED_COUNT,
        "own_memory_exec": _SHARED_COUNT,
        "own_child_keeps_streams": "no process may make a session of its own",
        "f07_multiprocessing": "there is no /dev/shm",
    },
    "docker": {
        "own_device_files": "/dev has terminals, of the container's own",
        "own_null_in_source": "the image's Python decides what it makes of a zero byte",
    },
}
