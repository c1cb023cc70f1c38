"""Says what Python itself knows of its code objects: a line of JSON each, then waits until stdin closes.

{"address", "name", "file", "firstLine", "places": [[byte offset, line, column], ...]}; line 0 is not a line, column
counts from 1, 0 is not a column.
"""
import dis
import json
import sys
import types

SOURCE = '''
def función_λ(x):
    return [y
            for y in x
            if y]

def 漢字():
    try:
        raise ValueError(
            "a" +
            str(1))
    except ValueError:
        pass
    finally:
        def inner(): return 1
        inner()

class Κ:
    def method(self):
        with open(__file__) as f, \\
             open(__file__) as g:
            yield from (a for a in f)

    async def coroutine(self):
        async for x in self: await x
        return lambda: (1,
            2)

def 𝒳():
    x = 1
''' + '\n' * 400 + '''    y = 2
    return x
'''


def walk(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            for inner in walk(const):
                yield inner


def places(code):
    if hasattr(code, 'co_positions'):
        for i, (line, _, column, _) in enumerate(code.co_positions()):
            yield [2 * i, line or 0, 0 if column is None else column + 1]
    elif hasattr(code, 'co_lines'):
        for start, end, line in code.co_lines():
            for at in range(start, end, 2):
                yield [at, line or 0, 0]
    else:
        starts = dict(dis.findlinestarts(code))
        line = code.co_firstlineno
        for at in range(0, len(code.co_code), 2):
            line = starts.get(at, line)
            yield [at, line, 0]


kept = [compile(SOURCE, '/tmp/größe_€.py', 'exec')]
for name in ('inspect', 'asyncio.base_events', 'argparse', 'typing'):
    module = __import__(name, fromlist=['x'])
    with open(module.__file__, encoding='utf-8') as f:
        kept.append(compile(f.read(), module.__file__, 'exec'))
for top in kept:
    for code in walk(top):
        print(json.dumps({
            'address': id(code),
            'name': getattr(code, 'co_qualname', code.co_name),
            'file': code.co_filename,
            'firstLine': code.co_firstlineno,
            'places': list(places(code)),
        }))
print('done', flush=True)
sys.stdin.read()
