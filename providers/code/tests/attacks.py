"""Attack scripts of our own, beside those in the folder of shared attacks: each with what must come of it.

A script reports what it should not have been able to do with a line that begins with `LEAK:`; the harness also looks
for the canary in its output, for files on the host and for processes that survived. `@@HOST@@`, `@@PPID@@`, `@@TCP@@`,
`@@ABS@@` and `@@UNIX@@` become the harness's folder, process id, loopback port and UNIX sockets.

Expectations: `noleak`; `timeout`; `bounded` (output cut); `partial` (time-out with output kept); `prompt` (ends early);
`rc:N`; `out:TEXT` (ended OK with this output); `err:TEXT` (in stderr); `memory` (killed for memory, or MemoryError).
"""

from __future__ import annotations

from typing import NamedTuple


class Attack(NamedTuple):
    """One script."""

    name: str
    expect: str
    code: str


_HELPERS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def tried(name, work, *harmless):
    try:
        result = work()
    except BaseException as error:
        print(name, type(error).__name__, str(error)[:80])
        return None
    if result not in harmless:
        print('LEAK:', name, repr(result)[:200])
    return result
"""

_SCRIPTS: list[tuple[str, str, str]] = [
    # -- secrets ------------------------------------------------------------------------------------------------
    ("env", "noleak", "import os, sys\nprint(dict(os.environ), sys.argv, sys.orig_argv)"),
    ("proc_environ", "noleak", "import glob\nfor p in glob.glob('/proc/[0-9]*/environ'):\n"
     "    try: print(open(p, 'rb').read())\n    except OSError as e: print(e.errno)"),
    ("proc_cmdline", "noleak", "import glob\nfor p in glob.glob('/proc/[0-9]*/cmdline'):\n    print(open(p, 'rb').read())"),
    ("walk_for_canary", "noleak", "import os\nfor top in ('/root', '/home', '/work', '/srv', '/opt', '/var', '/mnt', '/run'):\n"
     "    for folder, _, names in os.walk(top):\n        for n in names:\n            if n in ('secret.txt', 'credentials', '.bash_history', '.netrc', 'id_rsa'):\n"
     "                try: print(open(os.path.join(folder, n)).read(300)); print('LEAK: read', folder, n)\n                except OSError as e: print(e.errno)"),
    ("list_host_folder", "noleak", _HELPERS + "tried('listdir', lambda: os.listdir('@@HOST@@'))"),
    ("ssh_and_docker", "noleak", _HELPERS + "for p in ('/root/.ssh', '/root/.docker', '/var/run/docker.sock', '/run/docker.sock', '/var/lib', '/root/.bashrc'):\n"
     "    tried(p, lambda: os.stat(p).st_ino)"),
    ("interpreter_memory", "noleak", "import gc, sys\nfor o in gc.get_objects():\n    if isinstance(o, dict) and 'SECRET_TOKEN' in o: print('LEAK:', o['SECRET_TOKEN'])\n"
     "m = open('/proc/self/maps').read()\nprint(len(m))"),
    ("own_memory_scan", "noleak", "import re\nn = 0\nwith open('/proc/self/mem', 'rb', 0) as mem:\n    for line in open('/proc/self/maps'):\n"
     "        a, b = (int(x, 16) for x in line.split()[0].split('-'))\n        if 'rw' not in line or b - a > 1 << 26: continue\n"
     "        try: mem.seek(a); d = mem.read(b - a)\n        except (OSError, ValueError, OverflowError): continue\n"
     "        for hit in re.findall(rb'CANARY-[0-9a-f]{16}', d): print('LEAK:', hit)\n        n += 1\nprint(n > 5)"),
    ("init_memory", "noleak", _HELPERS + "for pid in (1, os.getppid()):\n    for f in ('mem', 'maps', 'environ', 'auxv', 'fd', 'cwd', 'root', 'exe'):\n"
     "        tried(f'{pid}/{f}', lambda: open(f'/proc/{pid}/{f}', 'rb').read(8) if f in ('mem', 'maps', 'environ', 'auxv') else os.listdir(f'/proc/{pid}/{f}') if f == 'fd' else os.readlink(f'/proc/{pid}/{f}'))"),
    ("jail_module_handles", "noleak", "import sys, os\nfound = [n for n in sys.modules if 'jail' in n]\nfor fd in range(3, 300):\n"
     "    try: os.fstat(fd); print('LEAK: open descriptor', fd, os.readlink(f'/proc/self/fd/{fd}'))\n    except OSError: pass\nprint(len(found))"),
    ("ptrace_parent", "noleak", _HELPERS + "tried('ptrace', lambda: libc.ptrace(16, os.getppid(), 0, 0), -1)\ntried('ptrace 1', lambda: libc.ptrace(16, 1, 0, 0), -1)"),
    ("dmesg", "noleak", _HELPERS + "tried('syslog', lambda: libc.klogctl(3, ctypes.create_string_buffer(4096), 4096), -1)\ntried('kmsg', lambda: open('/dev/kmsg', 'rb').read(1))\ntried('kcore', lambda: open('/proc/kcore', 'rb').read(1))"),
    # -- network ------------------------------------------------------------------------------------------------
    ("tcp6", "noleak", _HELPERS + "import socket\ntried('tcp6', lambda: socket.create_connection(('::1', @@TCP@@), 1).recv(99))"),
    ("udp", "noleak", _HELPERS + "import socket\ntried('udp', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', @@TCP@@)))"),
    ("other_families", "noleak", _HELPERS + "import socket\nfor family in (2, 3, 4, 5, 9, 10, 15, 16, 17, 21, 24, 26, 29, 30, 31, 32, 37, 38, 40, 41, 42, 43, 44):\n"
     "    for kind in (1, 2, 3, 5):\n        tried(f'family {family}/{kind}', lambda: socket.socket(family, kind).fileno())"),
    ("x32_socket", "noleak", _HELPERS + "import platform\nif platform.machine() == 'x86_64': tried('x32', lambda: libc.syscall(0x40000000 + 41, 2, 1, 0), -1)"),
    ("io_uring", "noleak", _HELPERS + "tried('io_uring', lambda: libc.syscall(425, 4, ctypes.create_string_buffer(256)), -1)"),
    ("unix_in_own_folder", "out:pong\n", "import socket, threading\ns = socket.socket(socket.AF_UNIX); s.bind('a.sock'); s.listen()\n"
     "def serve():\n    c, _ = s.accept(); c.sendall(b'pong'); c.close()\nthreading.Thread(target=serve).start()\n"
     "c = socket.socket(socket.AF_UNIX); c.connect('a.sock'); print(c.recv(9).decode())"),
    # -- the host's files, rights -------------------------------------------------------------------------------
    ("write_everywhere", "noleak", _HELPERS + "import sys, sysconfig\nfor p in ('/', '/usr', '/usr/lib', '/etc', '/dev', '/proc/sys/kernel', sys.prefix, sys.base_prefix, sysconfig.get_path('purelib'), '/root', '/work', '/var/tmp', '/run'):\n"
     "    tried(p, lambda: open(p + '/pwn', 'w').write('x'))"),
    ("core_pattern", "noleak", _HELPERS + "for p in ('kernel/core_pattern', 'kernel/modprobe', 'vm/overcommit_memory', 'kernel/hostname', 'net/ipv4/ip_forward', 'fs/binfmt_misc/register', 'user/max_user_namespaces'):\n"
     "    tried(p, lambda: os.open('/proc/sys/' + p, os.O_WRONLY))\ntried('sysrq', lambda: os.open('/proc/sysrq-trigger', os.O_WRONLY))"),
    ("sysfs_and_cgroups", "noleak", _HELPERS + "for p in ('/sys/fs/cgroup', '/sys/kernel', '/sys/fs'):\n    tried(p, lambda: os.listdir(p), [])"),
    ("device_files", "noleak", _HELPERS + "import stat\ntried('mknod', lambda: os.mknod('m', stat.S_IFBLK | 0o666, os.makedev(8, 0)))\ntried('mknod char', lambda: os.mknod('c', stat.S_IFCHR | 0o666, os.makedev(1, 1)))\n"
     "for d in ('mem', 'sda', 'vda', 'kvm', 'fuse', 'tty', 'ptmx', 'net/tun', 'loop-control'):\n    tried(d, lambda: os.open('/dev/' + d, os.O_RDWR))"),
    ("mount_anything", "noleak", _HELPERS + "for kind in (b'proc', b'tmpfs', b'sysfs', b'overlay', b'cgroup2', b'devtmpfs'):\n    tried(kind.decode(), lambda: libc.mount(kind, b'/tmp', kind, 0, None), -1)\ntried('umount', lambda: libc.umount2(b'/tmp', 2), -1)\ntried('umount proc', lambda: libc.umount2(b'/proc', 2), -1)"),
    ("namespace_by_clone", "noleak", _HELPERS + "for flag in (0x10000000, 0x20000000, 0x00020000, 0x40000000, 0x02000000, 0x80):\n"
     "    def work():\n        pid = libc.syscall(56 if os.uname().machine == 'x86_64' else 220, flag | 17, 0, 0, 0, 0)\n        if pid == 0: os._exit(0)\n        return pid\n    tried(hex(flag), work, -1)"),
    ("setns", "noleak", _HELPERS + "for pid in (1, os.getppid(), 'self'):\n    for ns in ('user', 'mnt', 'net', 'pid'):\n        tried(f'{pid}/{ns}', lambda: libc.setns(os.open(f'/proc/{pid}/ns/{ns}', os.O_RDONLY), 0), -1)"),
    ("become_root", "noleak", _HELPERS + "tried('setuid', lambda: os.setuid(0))\ntried('setgid', lambda: os.setgid(0))\ntried('setgroups', lambda: os.setgroups([0]))\ntried('setuid 1', lambda: os.setuid(1))"),
    ("suid_program", "noleak", _HELPERS + "import subprocess\nfor p in ('/bin/su', '/usr/bin/sudo', '/bin/mount', '/usr/bin/passwd', '/usr/bin/newgrp'):\n"
     "    if os.path.exists(p): print(p, subprocess.run([p, '-c', 'id'] if 'su' in p else [p], capture_output=True, input=b'').returncode)\n"
     "r = subprocess.run(['/bin/sh', '-c', 'id -u; grep -E Cap[EP] /proc/self/status'], capture_output=True, text=True).stdout\nprint(r)\nif r.startswith('0\\n'): print('LEAK: root')"),
    ("new_session_keyring", "noleak", _HELPERS + "tried('keyctl', lambda: libc.syscall(250, 0, -3, 1), -1)\ntried('add_key', lambda: libc.syscall(248, b'user', b'a', b'b', 1, -3), -1)"),
    ("handle_to_root", "noleak", _HELPERS + "buf = ctypes.create_string_buffer(b'\\x08\\0\\0\\0\\x01\\0\\0\\0\\x02\\0\\0\\0\\0\\0\\0\\0', 16)\ntried('open_by_handle_at', lambda: libc.syscall(304, os.open('/', os.O_RDONLY), buf, 0), -1)"),
    ("dotdot", "noleak", _HELPERS + "tried('read', lambda: open('/box/' + '../' * 40 + '@@HOST@@/secret.txt').read())\nfd = os.open('/', os.O_RDONLY)\ntried('openat', lambda: os.open('../..@@HOST@@/secret.txt', os.O_RDONLY, dir_fd=fd))"),
    ("link_to_host", "noleak", _HELPERS + "os.symlink('@@HOST@@/secret.txt', 'l')\ntried('symlink', lambda: open('l').read())\ntried('hard link', lambda: os.link('@@HOST@@/secret.txt', 'h'))"),
    ("other_root_by_proc", "noleak", _HELPERS + "for pid in [int(n) for n in os.listdir('/proc') if n.isdigit()]:\n    tried(f'{pid} root', lambda: open(f'/proc/{pid}/root@@HOST@@/secret.txt').read())\n    tried(f'{pid} cwd', lambda: open(f'/proc/{pid}/cwd/secret.txt').read())"),
    ("no_new_privs_off", "noleak", _HELPERS + "tried('nnp', lambda: libc.prctl(38, 0, 0, 0, 0), -1)\ntried('ambient', lambda: libc.prctl(47, 2, 21, 0, 0), -1)\ntried('seccomp off', lambda: libc.prctl(22, 0, 0, 0, 0), -1)"),
    # -- resources ----------------------------------------------------------------------------------------------
    ("fork_bomb", "prompt", "import os, ctypes\nctypes.CDLL(None).prctl(15, b'cncBOMB', 0, 0, 0)\nn = 0\nfor _ in range(400):\n"
     "    try:\n        if os.fork() == 0:\n            import time; time.sleep(30); os._exit(0)\n        n += 1\n    except OSError: break\nprint(n, flush=True)\nif n > 40: print('LEAK: forked', n, flush=True)\nos._exit(0)"),
    ("recursive_fork_bomb", "timeout", "import os, ctypes\nctypes.CDLL(None).prctl(15, b'cncBOMB', 0, 0, 0)\nwhile True:\n    try: os.fork()\n    except OSError: pass"),
    ("memory_single", "memory", "x = []\nwhile True: x.append(bytearray(b'x') * (16 << 20))"),
    ("memory_shared", "memory", "import mmap\nx = []\nimport os\nfor _ in range(4):\n    if os.fork() == 0: break\nwhile True:\n    m = mmap.mmap(-1, 32 << 20); x.append(m)\n    for i in range(0, 32 << 20, 4096): m[i] = 1"),
    ("memory_forked", "memory", "import os, time\nfor _ in range(12):\n    if os.fork() == 0: break\nx = bytearray(b'x') * (200 << 20)\ntime.sleep(60)"),
    ("memory_exec", "memory", "import subprocess, sys\nc = 'x = bytearray(b\"x\") * (100 << 20); import time; time.sleep(60)'\nps = [subprocess.Popen([sys.executable, '-I', '-S', '-c', c]) for _ in range(12)]\n[p.wait() for p in ps]"),
    ("tmpfs_bomb", "noleak", "n = 0\nfor d in ('/box', '/tmp', '/dev/shm'):\n    try:\n        for i in range(40):\n            with open(f'{d}/f{i}', 'wb') as f: n += f.write(b'x' * (8 << 20))\n    except OSError as e: print(d, e.errno)\nprint(n >> 20)\nif n > 200 << 20: print('LEAK:', n >> 20, 'MB of files')"),
    ("inode_bomb", "noleak", "n = 0\ntry:\n    for i in range(20000): open(f'/tmp/i{i}', 'w').close(); n += 1\nexcept OSError as e: print(e.errno)\nprint(n)\nif n > 12300: print('LEAK: inodes', n)"),
    ("descriptor_bomb", "noleak", "import os\nn = 0\ntry:\n    while n < 5000: os.open('/dev/null', os.O_RDONLY); n += 1\nexcept OSError as e: print(e.errno)\nif n > 100: print('LEAK: descriptors', n)"),
    ("flood_stdout", "bounded", "import os\nb = b'A' * 65536\nwhile True: os.write(1, b)"),
    ("flood_both", "bounded", "import os\nb = b'A' * 65536\nif os.fork() == 0:\n    while True: os.write(2, b)\nwhile True: os.write(1, b)"),
    ("sparse_file", "noleak", "try:\n    with open('s', 'wb') as f: f.truncate(1 << 40); print('LEAK: sparse terabyte')\nexcept OSError as e: print(e.errno)"),
    ("pipe_hoard", "noleak", "import os, fcntl\nn = 0\ntry:\n    for _ in range(200):\n        r, w = os.pipe()\n        try: fcntl.fcntl(w, 1031, 1 << 20)\n        except OSError: pass\n        os.set_blocking(w, False)\n        try:\n            while True: n += os.write(w, b'x' * 65536)\n        except BlockingIOError: pass\nexcept OSError as e: print(e.errno)\nif n > 100 << 20: print('LEAK: pipes hold', n >> 20, 'MB')"),
    ("many_timers", "prompt", "import signal, time\nsignal.signal(signal.SIGALRM, lambda *a: None)\nsignal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)\nfor _ in range(10000): pass\nsignal.setitimer(signal.ITIMER_REAL, 0)\nprint('ok')"),
    ("cpu_threads", "timeout", "import hashlib, threading\ndef burn():\n    while True: hashlib.sha256(b'x' * (1 << 22)).digest()\nfor _ in range(8): threading.Thread(target=burn).start()"),
    ("lock_memory", "noleak", _HELPERS + "tried('mlockall', lambda: libc.mlockall(3), -1)\nimport mmap\nm = mmap.mmap(-1, 1 << 22)\ntried('mlock', lambda: libc.mlock(ctypes.byref(ctypes.c_char.from_buffer(m)), 1 << 22), -1)"),
    ("real_time_priority", "noleak", _HELPERS + "tried('sched', lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)))\ntried('nice', lambda: os.setpriority(os.PRIO_PROCESS, 0, -10))\ntried('other', lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))"),
    ("zip_bomb", "noleak", "import zlib\nd = zlib.compress(b'\\0' * (1 << 28), 1)\nx = [zlib.decompress(d) for _ in range(8)]\nprint('LEAK: 2 GB')"),
    ("big_integer", "timeout", "x = 3\nwhile True: x = x * x % (1 << 4000000) + 1"),
    ("regex_blow_up", "timeout", "import re\nre.match(r'(a+)+$', 'a' * 60 + 'b')"),
    # -- processes and the result ------------------------------------------------------------------------------
    ("kill_everything", "noleak", "import os, signal\nprint('alive', flush=True)\ntry: os.kill(-1, signal.SIGTERM)\nexcept OSError as e: print(e.errno)\ntry: os.kill(1, signal.SIGKILL); os.kill(1, signal.SIGSTOP)\nexcept OSError as e: print(e.errno)"),
    ("signal_init", "rc:7", "import os, sys\nfor s in range(1, 65):\n    try: os.kill(1, s)\n    except OSError: pass\nsys.exit(7)"),
    ("limit_init", "rc:7", _HELPERS + "import sys, struct\nbuf = ctypes.create_string_buffer(struct.pack('<QQ', 0, 0), 16)\nnr = 302 if os.uname().machine == 'x86_64' else 261\n"
     "for res in (0, 1, 3, 7, 9): tried(f'prlimit {res}', lambda: libc.syscall(nr, 1, res, buf, None), -1)\nsys.exit(7)"),
    ("oom_score", "noleak", _HELPERS + "tried('init', lambda: os.write(os.open('/proc/1/oom_score_adj', os.O_WRONLY), b'1000'))\ntried('lower', lambda: os.write(os.open('/proc/self/oom_score_adj', os.O_WRONLY), b'-1000'))"),
    ("daemon_after_ok", "out:done\n", "import os, ctypes, time\nfor _ in range(3):\n    if os.fork() == 0:\n        os.setpgid(0, 0) if False else None\n        if os.fork() == 0:\n            ctypes.CDLL(None).prctl(15, b'cncSURV', 0, 0, 0)\n            for fd in range(3): os.close(fd)\n            time.sleep(60)\n        os._exit(0)\nprint('done')"),
    ("closed_streams", "rc:5", "import os\nos.close(0); os.close(1); os.close(2)\nos._exit(5)"),
    ("stdout_replaced", "out:x\n", "import os, sys\nfd = os.open('f', os.O_CREAT | os.O_WRONLY)\nprint('x', flush=True)\nos.dup2(fd, 1)\nprint('hidden')"),
    ("binary_output", "rc:0", "import os\nos.write(1, bytes(range(256)) * 100); os.write(2, b'\\xff\\xfe' * 50)"),
    ("lone_surrogate", "err:UnicodeEncodeError", "print('\\ud800')"),
    ("null_in_source", "rc:1", "print(1)\x00print(2)"),
    ("exit_huge", "rc:255", "import sys\nsys.exit(2**40 - 1)"),
    ("exit_text", "err:goodbye", "import sys\nsys.exit('goodbye')"),
    ("broken_excepthook", "rc:1", "import sys\nsys.excepthook = None\nraise ValueError('x')"),
    ("raise_in_str", "rc:1", "class E(BaseException):\n    def __str__(self): raise SystemExit(0)\nraise E()"),
    ("abort", "rc:-6", "import os\nos.abort()"),
    ("rt_signal", "rc:-40", "import os\nos.kill(os.getpid(), 40)"),
    ("stack_overflow", "prompt", "import ctypes, threading\nthreading.stack_size(1 << 16)\nimport sys; sys.setrecursionlimit(10**7)\ndef f(): f()\nt = threading.Thread(target=f); t.start(); t.join()"),
    ("thread_never_ends", "timeout", "import threading\nthreading.Thread(target=threading.Event().wait).start()\nprint('main ends', flush=True)"),
    ("finalizer_hangs", "timeout", "class A:\n    def __del__(self):\n        while True: pass\na = A()"),
    ("stop_children", "timeout", "import os, signal, time, ctypes\nfor _ in range(4):\n    if os.fork() == 0:\n        ctypes.CDLL(None).prctl(15, b'cncSURV', 0, 0, 0)\n        os.kill(os.getpid(), signal.SIGSTOP); time.sleep(99)\ntime.sleep(99)"),
    ("patch_the_library", "prompt", "import builtins, json, math, os, sys, random, sympy\nbuiltins.CNC_LEFT = 1; math.pi = 3; json.dumps = lambda *a, **k: 'hacked'; sys.path.insert(0, '/cnc')\nsympy.pi = 3; random.seed(1); builtins.print = None"),
    ("see_the_patch", "noleak", "import builtins, json, math, sys, os\nif hasattr(builtins, 'CNC_LEFT') or math.pi == 3 or json.dumps(1) == 'hacked' or '/cnc' in sys.path: print('LEAK: state of an earlier run')\n"
     "for d in ('/tmp', '/dev/shm', '/box'):\n    left = set(os.listdir(d)) - {'main.py'}\n    if left: print('LEAK: left over', d, left)"),
    ("sysv_and_queues", "noleak", _HELPERS + "tried('shmget', lambda: libc.shmget(0x1234, 4096, 0o1666), -1)\ntried('semget', lambda: libc.semget(0x1234, 1, 0o1666), -1)\ntried('msgget', lambda: libc.msgget(0x1234, 0o1666), -1)\ntried('mq_open', lambda: libc.syscall(240, b'x', 0o102, 0o600, None), -1)"),
]  # fmt: skip

ATTACKS = [Attack(f"own_{name}", expect, code) for name, expect, code in _SCRIPTS]
