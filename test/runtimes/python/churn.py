"""Functions that are compiled, run and freed, and modules that are imported, each with a name of its own: a function,
its file and its first line say the same number, whatever stood at its address before."""
import os, sys, tempfile


class Name(str):
    """Template engines and test runners name code with subclasses of str."""


def spin(n):
    total = 0
    for k in range(n):
        total += k * k
    return total


def compiled(i):
    lines = "\n" * (i % 500)
    body = f"def churn_{i}(n):\n  s = 0\n  for k in range(n): s += k\n  return s\n"
    space = {}
    exec(compile(lines + body, Name(f"churn_{i}.py") if i % 2 else f"churn_{i}.py", "exec"), space)
    space[f"churn_{i}"](60000)


def imported(i):
    name = f"module_{i % 50}"
    sys.modules.pop(name, None)
    __import__(name)


with tempfile.TemporaryDirectory() as directory:
    sys.path.insert(0, directory)
    sys.dont_write_bytecode = True
    for i in range(50):
        with open(os.path.join(directory, f"module_{i}.py"), "w") as file:
            file.write("s = 0\nfor k in range(20000): s += k\n")
    i = 0
    while True:
        compiled(i % 1000)
        imported(i)
        spin(2000)
        i += 1
