"""split.py SHAPE: spends 30 % of its CPU time in a() and 70 % in b(), by its own clock, for ever."""
import random
import sys
import threading
import time


def spend(seconds):
    """The same native leaf below both."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(2000))


def spend_deep(seconds, depth):
    if depth:
        return spend_deep(seconds, depth - 1)
    return spend(seconds)


def a(*args):
    work(*args)


def b(*args):
    work(*args)


def work(spender, *args):
    """For 1 to 9 ms: what repeats every 10 ms is in step with 97 samples a second."""
    spender(random.uniform(0.001, 0.009), *args)


def is_turn_of_a():
    """Has a() had its 30 %?"""
    return spent[0] * 7 <= spent[1] * 3


def both(*args):
    before = time.thread_time()
    while True:
        turn = 0 if is_turn_of_a() else 1
        (a, b)[turn](*args)
        now = time.thread_time()
        spent[turn] += now - before
        before = now


def only(turn):
    """Works whenever it is its turn."""
    while True:
        if is_turn_of_a() != (turn == 0):
            time.sleep(0.001)
            continue
        before = time.thread_time()
        (a, b)[turn](spend)
        spent[turn] += time.thread_time() - before


spent = [0.0, 0.0]
shape = sys.argv[1]
if shape == 'threads':
    threading.Thread(target=only, args=(0,)).start()
    only(1)
elif shape == 'recursive':
    both(spend_deep, 30)
else:
    both(spend)
