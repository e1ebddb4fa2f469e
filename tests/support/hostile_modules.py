"""Modules that try to pass without being right, and modules that try to get out.

Each defines ``f``; asked for ``f(2)`` and ``f("a")``, the right answers are ``4`` and ``"aa"``.
"""

import textwrap
from typing import Final

__all__ = ["ESCAPES", "HOSTILE", "SLOW"]

_WRONG: Final = "\ndef f(x):\n    '''Double.\n\n    >>> f(2)\n    4\n    '''\n    return 'wrong'\n"


def _with(table: dict[str, str], *, wrong: bool = True) -> dict[str, str]:
    """Return the modules, each with a wrong ``f`` behind it where it has none of its own."""
    return {
        name: text + ("" if "def f(" in text or not wrong else _WRONG)
        for name, raw in table.items()
        for text in [textwrap.dedent(raw)]
    }


HOSTILE: Final = _with(
    {
        # It ends before it is asked.
        "exits with 0 at import": "import os\nos._exit(0)",
        "asks to exit at import": "import sys\nsys.exit(0)",
        "exits with 0 when asked": "import os\ndef f(x):\n    os._exit(0)",
        "asks to exit when asked": "def f(x):\n    raise SystemExit(0)",
        "exits at exit": "import atexit, os\natexit.register(lambda: os._exit(0))",
        "interrupts": "def f(x):\n    raise KeyboardInterrupt",
        "replaces itself": "import os\nos.execv('/bin/true', ['true'])",
        "goes on in a child": "import os\nif os.fork():\n    os._exit(0)",
        "kills itself": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "crashes": "import ctypes\ndef f(x):\n    ctypes.string_at(0)",
        # It writes where only the runner should.
        "floods standard output": """
            import os
            for _ in range(300):
                os.write(1, b"4\\n'aa'\\n" * 5000)
            """,
        "floods print": "for n in range(30000):\n    print('4' * 50)",
        "floods the report": """
            import os
            for number in range(3, 500):
                try:
                    os.write(number, b"4\\n" * 10000)
                except OSError:
                    pass
            """,
        "writes frames by guess": """
            import json, os
            def f(x):
                frame = json.dumps({"answer": 0, "value": 4, "output": ""}).encode()
                for number in range(3, 500):
                    try:
                        os.write(number, b"0" * 32 + b" %d\\n" % len(frame) + frame)
                    except OSError:
                        pass
                return 4
            """,
        "sends by the runner's own function": """
            import sys
            def f(x):
                frame = sys._getframe()
                while frame:
                    send = frame.f_locals.get("send")
                    if callable(send):
                        for number in range(9):
                            send(answer=number, value=4, output="")
                    frame = frame.f_back
                return 4
            """,
        "says it is loaded twice": """
            import gc
            for thing in gc.get_objects():
                if getattr(thing, "__qualname__", "") == "sender.<locals>.send":
                    thing(loaded=True)
                    thing(answer=0, value=4, output="")
            """,
        "closes all pipes": "import os\ndef f(x):\n    os.closerange(0, 30)\n    return 4",
        "turns the pipes": """
            import os
            def f(x):
                for number in range(20):
                    try:
                        os.dup2(os.open("/dev/null", os.O_RDWR), number)
                    except OSError:
                        pass
                return 4
            """,
        "prints the answers": "def f(x):\n    print(4)\n    print(\"'aa'\")\n    raise ValueError",
        # It changes what the runner stands on.
        "changes builtins": """
            import builtins
            def never(*_, **__):
                return True
            for name in ("isinstance", "type", "len", "repr", "str", "compile", "exec", "zip"):
                setattr(builtins, name, never)
            """,
        "changes json": """
            import json, json.encoder
            json.JSONEncoder.encode = lambda self, value: '{"answer": 0, "value": 4}'
            json.encoder.c_make_encoder = None
            json.dumps = lambda *_, **__: "4"
            """,
        "changes what doctests use": """
            import doctest, io, sys, traceback
            doctest.OutputChecker.check_output = lambda *_: True
            doctest.DocTestRunner.run = lambda *_, **__: doctest.TestResults(0, 9)
            io.StringIO.getvalue = lambda self: "4\\n" if False else ""
            traceback.format_exception_only = lambda *_: ["4\\n"]
            """,
        "changes the display": """
            import sys
            sys.displayhook = sys.__displayhook__ = lambda value: print(4)
            """,
        "changes os": "import os\nos.write = lambda *_: 1\nos._exit = lambda *_: None",
        "changes the import system": """
            import importlib, sys
            sys.meta_path.clear()
            sys.path_hooks.clear()
            importlib.import_module = lambda *_: None
            """,
        "takes another module's place": """
            import sys
            class Anything:
                def __getattr__(self, name):
                    return lambda *_: 4
            sys.modules[__name__] = Anything()
            """,
        "traces the runner": """
            import sys
            def watch(frame, event, value):
                frame.f_trace_lines = False
                return watch
            sys.settrace(watch)
            sys.setprofile(lambda frame, event, value: None)
            """,
        # It looks for what is expected.
        "looks it up in its docstring": """
            import doctest
            def f(x):
                '''Double.

                >>> f(2)
                4
                >>> f("a")
                'aa'
                '''
                for example in doctest.DocTestParser().get_examples(f.__doc__):
                    if repr(x) in example.source:
                        return eval(example.want)
            """,
        "looks it up in its source": """
            import inspect, re, sys
            def f(x):
                '''Double.

                >>> f(2)
                4
                >>> f("a")
                'aa'
                '''
                source = inspect.getsource(sys.modules[__name__])
                return eval(re.search(r"f\\(%r\\)\\n +(.+)" % x, source)[1])
            """,
        "looks it up among the questions": """
            import gc
            def f(x):
                for thing in gc.get_objects():
                    if type(thing) is dict and "want" in thing:
                        return thing["want"]
                return "wrong"
            """,
        # It answers with something that only seems right.
        "equals everything": """
            class Equal:
                __eq__ = __ne__ = lambda self, other: True
                __hash__ = None
            def f(x):
                return Equal()
            """,
        "equals everything and is text": """
            class Equal(str):
                __eq__ = lambda self, other: True
                __hash__ = str.__hash__
                __str__ = __repr__ = lambda self: "4"
            def f(x):
                return Equal("wrong")
            """,
        "is a number of its own": """
            class Four(int):
                __repr__ = __str__ = lambda self: "4"
            def f(x):
                return Four(5)
            """,
        "changes while it is shown": """
            class Turn:
                turn = 0
                def __repr__(self):
                    Turn.turn += 1
                    return ["4", "5"][Turn.turn % 2]
            def f(x):
                return Turn()
            """,
        "is never done being shown": """
            class Endless:
                def __repr__(self):
                    return repr(self)
            def f(x):
                return Endless()
            """,
        "lies about its class": """
            class Liar(dict):
                __class__ = property(lambda self: int)
                def items(self):
                    return [("answer", 0), ("value", 4)]
            def f(x):
                return Liar(a=1)
            """,
        "is not a number": "def f(x):\n    return float('nan')",
        "is a huge number": "def f(x):\n    return 10 ** 100_000",
        "is half a character": "def f(x):\n    return '\\ud800' + chr(0) + '\\udc80'",
        "is deep": """
            def f(x):
                value = []
                for _ in range(100_000):
                    value = [value]
                return value
            """,
        "is endless": "def f(x):\n    value = []\n    value.append(value)\n    return value",
        "raises something odd": """
            import os
            class Meta(type):
                __name__ = property(lambda cls: os._exit(0))
            class Odd(BaseException, metaclass=Meta):
                def __str__(self):
                    os._exit(0)
                __repr__ = __str__
            def f(x):
                raise Odd
            """,
        "raises something long": "def f(x):\n    raise ValueError('4\\n' * 10_000_000)",
        # It uses up what there is.
        "takes memory": "def f(x):\n    return len(bytearray(10 << 30))",
        "takes memory for its name": "class A:\n    __repr__ = lambda self: 'a' * (10 << 30)\n"
        "def f(x):\n    return A()",
        "recurses": "import sys\nsys.setrecursionlimit(10 ** 9)\n"
        "def f(x):\n    return max([x], key=f)",
        "starts threads": """
            import threading, time
            for _ in range(500):
                threading.Thread(target=time.sleep, args=[9], daemon=True).start()
            """,
        "opens files": "opened = [open('/dev/null') for _ in range(10000)]",
        "fills the disk": """
            for number in range(100):
                with open(f"file{number}", "wb") as file:
                    file.write(bytes(10 << 20))
            """,
        # It is no module.
        "has a zero byte": "x = 1\0",
        "has half a character": "x = '\ud800'",
        "does not parse": "def f(x: return 4",
        "is deep in itself": "x = " + "(" * 5000 + ")" * 5000,
        "has another coding": "# coding: utf-7\nx = 1",
    }
)
"""None of them is right for both questions."""

SLOW: Final = _with(
    {
        "sleeps at import": "import time\ntime.sleep(60)",
        "runs for ever": "def f(x):\n    while True:\n        pass",
        "ignores every signal": """
            import signal, time
            for number in range(1, 65):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            time.sleep(60)
            """,
        "kills the runner": """
            import os, signal, time
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
            """,
        "halts the runner": """
            import os, signal, time
            os.kill(os.getppid(), signal.SIGSTOP)
            time.sleep(60)
            """,
        "kills its group": "import os, signal\nos.killpg(0, signal.SIGKILL)",
        "multiplies": "import os\nwhile True:\n    os.fork()",
    }
)
"""As above, but they take until a limit ends them."""


ESCAPES: Final = _with(
    {
        "writes a file elsewhere": """
            def f(world):
                open(world["outside"] + "/written", "w").close()
            """,
        "changes a file of the project": """
            def f(world):
                open(world["project"] + "/acme.py", "a").write("x")
            """,
        "reads a file elsewhere": """
            def f(world):
                return open(world["outside"] + "/secret").read()
            """,
        "reads `.env` of the project": """
            def f(world):
                return open(world["project"] + "/.env").read()
            """,
        "reads the examples of its own file": """
            def f(world):
                return open(world["project"] + "/hidden.py").read()
            """,
        "reads the environment of pytest": """
            def f(world):
                return open("/proc/%d/environ" % world["pid"]).read()
            """,
        "connects to a port of this machine": """
            import socket
            def f(world):
                socket.create_connection(("127.0.0.1", world["port"]), 2).close()
                return "connected"
            """,
        "connects to a socket in the file system": """
            import socket
            def f(world):
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(world["outside"] + "/socket")
                return "connected"
            """,
        "connects to a socket without a file": """
            import socket
            def f(world):
                connection = socket.socket(socket.AF_UNIX)
                connection.connect("\\0" + world["abstract"])
                return "connected"
            """,
        "sends a signal to pytest": """
            import os, signal
            def f(world):
                os.kill(world["pid"], signal.SIGURG)
            """,
        "sees other processes": """
            def f(world):
                # Its number may be that of another process in there.
                return open("/proc/%d/cmdline" % world["pid"]).read() == world["command"]
            """,
        "leaves a process behind": """
            import os, sys
            def f(world):
                if os.fork():
                    return
                os.setsid()
                if os.fork():
                    os._exit(0)
                os.closerange(0, 20)
                code = "import time; time.sleep(9)"
                os.execv(sys.executable, [sys.executable, "-c", code, world["mark"]])
            """,
        "leaves shared memory behind": """
            def f(world):
                open("/dev/shm/" + world["mark"], "w").close()
            """,
        "uses what pytest has open": """
            import os
            def f(world):
                found = []
                for number in os.listdir("/proc/self/fd"):
                    try:
                        found.append(os.readlink("/proc/self/fd/" + number))
                    except OSError:
                        pass
                return any(world["outside"] in path for path in found)
            """,
    },
    wrong=False,
)
"""What each is told of the world stands in tests/sandbox/test_escapes.py. A true answer, or a trace
that is left, is an escape."""
