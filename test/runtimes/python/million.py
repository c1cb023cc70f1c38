import sys

def descend(n):
    if n > 0:
        return descend(n - 1) + 1
    print("deep", flush=True)
    while True:
        n = (n * 31 + 7) & 0xFFFF

sys.setrecursionlimit(1_100_000)
descend(1_000_000)
