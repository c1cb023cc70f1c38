"""20 calls deep, for ever."""


def spin():
    n = 0
    while n < 20000:
        n += 1
    return n


def recurse(depth):
    return recurse(depth - 1) + 1 if depth > 1 else spin() + 1


while True:
    recurse(20)
