"""split.py SHAPE: spends 30 % of its CPU time in a() and 70 % in b(), by its own clock, for ever."""
import sys
import threading
import time

CHUNK = 0.001


def spend(seconds):
    """The same native leaf below both."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(2000))


def spend_deep(seconds, depth):
    if depth:
        return spend_deep(seconds, depth - 1)
    return spend(seconds)


def a(spender, *args):
    spender(CHUNK * 3, *args)


def b(spender, *args):
    spender(CHUNK * 7, *args)


def both(*args):
    while True:
        a(*args)
        b(*args)


def only(function):
    """Works until it has had its share of both threads' time."""
    share, used = (3, 0) if function is a else (7, 1)
    while True:
        if spent[used] * (10 - share) <= spent[1 - used] * share:
            before = time.thread_time()
            function(spend)
            spent[used] += time.thread_time() - before
        else:
            time.sleep(0.001)


spent = [0.0, 0.0]
shape = sys.argv[1]
if shape == 'threads':
    threading.Thread(target=only, args=(a,)).start()
    only(b)
elif shape == 'recursive':
    both(spend_deep, 30)
else:
    both(spend)
