"""scenarios.py NAME: a known chain of calls whose innermost function computes for ever. Before it does, it prints
the stack as Python itself sees it: a line of JSON, [[name, file, line, first line of the function], ...], leaf first.
"""
import asyncio
import contextlib
import functools
import json
import sys
import threading


def report(frame, inner=(), ahead=0):
    """`inner`: frames that `frame` will have called, from `ahead` lines further down."""
    stack = list(inner)
    while frame:
        code = frame.f_code
        name = getattr(code, 'co_qualname', code.co_name)
        stack.append([name, code.co_filename, frame.f_lineno + ahead, code.co_firstlineno])
        ahead = 0
        frame = frame.f_back
    # not print(): that may run the codec's Python code
    sys.stdout.buffer.write((json.dumps(stack) + '\n').encode())
    sys.stdout.flush()


def burn():
    report(sys._getframe())
    x = 1
    while True:
        x = (x * 31 + 7) % 1000003


def recurse(n):
    if n == 0:
        burn()
    recurse(n - 1)


def recursion():
    recurse(50)


def deep():
    sys.setrecursionlimit(2000)
    recurse(500)


class Callable:
    def __call__(self, *_):
        burn()

    def __getattr__(self, name):
        return self()

    def __del__(self):
        pass


def generate():
    yield 1
    yield Callable()()


def native():
    """Through sorted(), the call slot, a generator's next, map() and functools."""

    def key(_):
        for _ in generate():
            pass

    functools.reduce(lambda _, x: sorted([x], key=key), [1, 2])


def attribute():
    list(map(lambda o: o.missing, [Callable()]))


def closure():
    def outer(x):
        def inner(y):
            def innermost():
                burn()
                return x, y
            innermost()
        inner(2)
    outer(1)


def delegating():
    def inner():
        yield 1
        burn()

    def outer():
        yield from inner()
    for _ in outer():
        pass


def coroutines():
    async def leaf():
        await asyncio.sleep(0)
        burn()

    async def middle():
        await leaf()

    async def top():
        await asyncio.gather(middle())
    loop = asyncio.new_event_loop()
    loop.run_until_complete(top())


def exceptions():
    @contextlib.contextmanager
    def manager():
        try:
            yield
        finally:
            burn()

    def thrower():
        raise ValueError
    with manager():
        try:
            thrower()
        except ValueError:
            raise


def evaluated():
    names = {'burn': burn}
    exec('def made():\n\n    burn()\n', names)
    eval('made()', names)


def callback():
    import ctypes
    function = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: burn() or 0)
    function()


def regular_expression():
    import re
    re.sub('x', lambda match: burn(), 'axb')


def comprehension():
    [[burn() for _ in [1]] for _ in [1]]


def names():
    def größe():
        burn()

    class 漢字:
        def λ(self):
            größe()
    漢字().λ()


def thread():
    def work():
        recurse(3)
    started = threading.Thread(target=work)
    started.start()
    started.join()


def many_keys():
    """The interpreter's own key stays a small one; those of others must not confuse."""
    import ctypes
    create = ctypes.CDLL(None).pthread_key_create
    for _ in range(40):
        create(ctypes.byref(ctypes.c_uint()), None)
    thread()


def interpreter_functions():
    """create() and run(interpreter, source)."""
    try:
        import _interpreters as interpreters
        return interpreters.create, interpreters.exec
    except ImportError:
        import _xxsubinterpreters as interpreters
        return interpreters.create, interpreters.run_string


SPIN = 'def spin():\n    x = 1\n    while True:\n        x = x * 31 % 1000003\nspin()\n'
SCRIPT = '<script>' if sys.version_info >= (3, 14) else '<string>'


def subinterpreter():
    create, run = interpreter_functions()
    made = create()
    report(sys._getframe(), [['spin', SCRIPT, 4, 1], ['<module>', SCRIPT, 5, 1]], 1)
    run(made, SPIN)


def nested_subinterpreters():
    """From the first into an older one, so that they are in no order."""
    create, run = interpreter_functions()
    older = create()
    newer = create()
    inside = 'def between():\n    run(%d, source)\nbetween()\n' % older
    module = '_interpreters' if run.__name__ == 'exec' else '_xxsubinterpreters'
    inside = 'from %s import %s as run\nsource = %r\n' % (module, run.__name__, SPIN) + inside
    inner = [['spin', SCRIPT, 4, 1], ['<module>', SCRIPT, 5, 1], ['between', SCRIPT, 4, 3], ['<module>', SCRIPT, 5, 1]]
    report(sys._getframe(), inner, 1)
    run(newer, inside)


def parallel_subinterpreters():
    """Two threads, an interpreter each, and from 3.12 on a lock each."""
    create, run = interpreter_functions()
    running = [create(), create()]

    def work(made, reports=False):
        if reports:
            report(sys._getframe(), [['spin', SCRIPT, 4, 1], ['<module>', SCRIPT, 5, 1]], 1)
        run(made, SPIN)
    threads = [threading.Thread(target=work, args=(made, made is running[1])) for made in running]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


if __name__ == '__main__':
    globals()[sys.argv[1]]()
