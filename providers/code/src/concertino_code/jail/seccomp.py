"""The system-call filter: everything is allowed but what only an attack, or a system tool, needs.

Hand-made BPF for x86_64 and aarch64. Denied calls fail with EPERM, so that programs continue; `clone3` fails with
ENOSYS, because its flags lie in memory that a filter cannot read, and the C library then uses `clone`. A socket may
only be of the family UNIX unless the network is allowed: a network namespace alone does not stop AF_VSOCK.

Invariant: a call made with the numbers of another architecture, x32 included, is never executed.
"""

from __future__ import annotations

import ctypes
import struct

from .syscalls import MACHINE, numbers, syscall

# name: (x86_64, aarch64)
_DENIED: dict[str, tuple[int | None, int | None]] = {
    "_sysctl": (156, None), "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "bpf": (321, 280),
    "chroot": (161, 51), "clock_adjtime": (305, 266), "clock_settime": (227, 112), "create_module": (174, None),
    "delete_module": (176, 106), "fanotify_init": (300, 262), "finit_module": (313, 273), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fsopen": (430, 430), "fspick": (433, 433), "get_kernel_syms": (177, None),
    "init_module": (175, 105), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425), "ioperm": (173, None), "iopl": (172, None), "ioprio_set": (251, 30),
    "kcmp": (312, 272), "kexec_file_load": (320, 294), "kexec_load": (246, 104), "keyctl": (250, 219),
    "lookup_dcookie": (212, 18), "mbind": (237, 235), "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "migrate_pages": (256, 238), "modify_ldt": (154, None),
    "mount": (165, 40), "mount_setattr": (442, 442), "move_mount": (429, 429), "move_pages": (279, 239),
    "mq_open": (240, 180), "mq_unlink": (241, 181), "msgctl": (71, 187), "msgget": (68, 186), "msgrcv": (70, 188),
    "msgsnd": (69, 189), "name_to_handle_at": (303, 264), "nfsservctl": (180, 42), "open_by_handle_at": (304, 265),
    "open_tree": (428, 428), "perf_event_open": (298, 241), "personality": (135, 92), "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41), "pkey_mprotect": (329, 288), "process_madvise": (440, 440),
    "process_mrelease": (448, 448), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "ptrace": (101, 117), "query_module": (178, None), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "reboot": (169, 142), "request_key": (249, 218), "sched_setattr": (314, 274), "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119), "semctl": (66, 191), "semget": (64, 190), "semop": (65, 193),
    "semtimedop": (220, 192), "set_mempolicy": (238, 237), "set_mempolicy_home_node": (450, 450),
    "setdomainname": (171, 162), "sethostname": (170, 161), "setns": (308, 268), "setpriority": (141, 140),
    "settimeofday": (164, 170), "shmat": (30, 196), "shmctl": (31, 195), "shmget": (29, 194), "swapoff": (168, 225),
    "swapon": (167, 224), "sysfs": (139, None), "syslog": (103, 116), "umount2": (166, 39), "unshare": (272, 97),
    "uselib": (134, None), "userfaultfd": (323, 282), "ustat": (136, None), "vhangup": (153, 58),
    "vmsplice": (278, 75),
    # Attributes of files in memory are the kernel's memory, which no limit of a process counts.
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "setxattrat": (463, 463),
}  # fmt: skip
_SPECIAL: dict[str, tuple[int | None, int | None]] = {
    "clone": (56, 220), "clone3": (435, 435), "ioctl": (16, 29), "prlimit64": (302, 261), "setpgid": (109, 154),
    "setsid": (112, 157), "setsockopt": (54, 208), "socket": (41, 198), "socketpair": (53, 199),
}  # fmt: skip
# Landlock has no rule for these: they would reach every file of the user's, and tell when one changes.
_ATTRIBUTES: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
}
_OWNERSHIP: dict[str, tuple[int | None, int | None]] = {
    "chown": (92, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "lchown": (94, None),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "inotify_add_watch": (254, 27),
}

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS, _EAFNOSUPPORT = _ERROR | 1, _ERROR | 38, _ERROR | 97
_NO_EFFECT = _ERROR
"""The call does nothing and says that it succeeded."""
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT, _THIRD_ARGUMENT = 0, 4, 16, 24, 32
# Every CLONE_NEW... flag, CLONE_NEWTIME (0x80) included.
_NEW_NAMESPACE = 0x7E020080
_UNIX = (1,)
# UNIX, INET, INET6, and NETLINK, by which the C library lists the network's interfaces.
_INTERNET = (1, 2, 10, 16)
# TIOCSTI and TIOCLINUX put characters into the input of a terminal.
_TERMINAL_INJECTION = (0x5412, 0x541C)
# SO_SNDBUF: what waits in a socket is the kernel's memory, which no limit of a process counts.
_SEND_BUFFER = (7,)


class _Program:
    """A BPF program in the making."""

    def __init__(self) -> None:
        self._code: list[tuple[int, int, int, int]] = []

    def add(self, code: int, value: int, yes: int = 0, no: int = 0) -> None:
        """One instruction; `yes` and `no` are how many to skip."""
        self._code.append((code, yes, no, value & 0xFFFFFFFF))

    def forbid(self, number: int, verdict: int = _EPERM) -> None:
        """This call has this verdict, whatever its arguments."""
        self.add(_EQUAL, number, 0, 1)
        self.add(_RETURN, verdict)

    def decide(self, number: int, argument: int, values: tuple[int, ...], met: int, unmet: int, test: int) -> None:
        """This call has the verdict `met` if an argument passes the test with one of the values, else `unmet`."""
        self.add(_EQUAL, number, 0, 3 + len(values))
        self.add(_LOAD, argument)
        for place, value in enumerate(values):
            # Jumps count from the next instruction: over the other tests and the verdict `unmet`.
            self.add(test, value, len(values) - place, 0)
        self.add(_RETURN, unmet)
        self.add(_RETURN, met)

    def to_bytes(self) -> bytes:
        """The program as the kernel reads it."""
        return b"".join(struct.pack("<HBBI", code, yes, no, value) for code, yes, no, value in self._code)


def build(*, network: bool = False, one_session: bool = False, machine: str = MACHINE) -> bytes:
    """The filter.

    Args:
        network: sockets of the internet families are allowed too.
        one_session: for a jail without namespaces. No process may leave the session and the process group, sockets
            come in pairs only, modes and times of files stay as they are, owners and attributes cannot be changed.
        machine: whose system calls are meant, as `platform.machine` names it.
    """
    call = numbers(_SPECIAL, machine)
    program = _Program()
    program.add(_LOAD, _ARCHITECTURE)
    program.add(_EQUAL, _ARCHITECTURES.get(machine, 0), 1, 0)
    program.add(_RETURN, _KILL)
    program.add(_LOAD, _NUMBER)
    if machine == "x86_64":  # x32
        program.add(_AT_LEAST, 0x40000000, 0, 1)
        program.add(_RETURN, _EPERM)
    program.forbid(call["clone3"], _ENOSYS)
    program.decide(call["clone"], _FIRST_ARGUMENT, (_NEW_NAMESPACE,), _EPERM, _ALLOW, _ANY_BIT)
    program.decide(call["prlimit64"], _FIRST_ARGUMENT, (0,), _ALLOW, _EPERM, _EQUAL)  # its own limits only
    program.decide(call["ioctl"], _SECOND_ARGUMENT, _TERMINAL_INJECTION, _EPERM, _ALLOW, _EQUAL)
    program.decide(call["setsockopt"], _THIRD_ARGUMENT, _SEND_BUFFER, _NO_EFFECT, _ALLOW, _EQUAL)
    families = _INTERNET if network else _UNIX
    if one_session:
        for name in ("setsid", "setpgid"):
            program.forbid(call[name])
        for number in sorted(numbers(_ATTRIBUTES, machine).values()):
            program.forbid(number, _NO_EFFECT)  # an error would break every program that copies a file
        for number in sorted(numbers(_OWNERSHIP, machine).values()):
            program.forbid(number)
        if not network:
            # Landlock does not keep a process from connecting to a UNIX socket by its path.
            program.forbid(call["socket"])
    # A network namespace alone does not stop AF_VSOCK.
    program.decide(call["socket"], _FIRST_ARGUMENT, families, _ALLOW, _EAFNOSUPPORT, _EQUAL)
    program.decide(call["socketpair"], _FIRST_ARGUMENT, _UNIX, _ALLOW, _EAFNOSUPPORT, _EQUAL)
    for number in sorted(numbers(_DENIED, machine).values()):
        program.forbid(number)
    program.add(_RETURN, _ALLOW)
    return program.to_bytes()


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def apply(program: bytes) -> None:
    """Put this process, and all that it will start, under the filter, for good. Needs no_new_privs."""
    buffer = ctypes.create_string_buffer(program, len(program))
    syscall("seccomp", 1, 0, ctypes.byref(_Filter(len(program) // 8, ctypes.addressof(buffer))))
