<?php
/* split.php SHAPE: spends 30 % of its CPU time in a() and 70 % in b(), by its own clock, for ever. */

function now(): float
{
    $usage = getrusage();
    return $usage['ru_utime.tv_sec'] + $usage['ru_stime.tv_sec'] + ($usage['ru_utime.tv_usec'] + $usage['ru_stime.tv_usec']) / 1e6;
}

/* The same native leaf below both. */
function spend(float $seconds): void
{
    $end = now() + $seconds;
    while (now() < $end) {
        array_sum(range(1, 500));
    }
}

function spend_deep(float $seconds, int $depth): void
{
    if ($depth > 0) {
        spend_deep($seconds, $depth - 1);
    } else {
        spend($seconds);
    }
}

function a(callable $spender, ...$more): void
{
    work($spender, ...$more);
}

function b(callable $spender, ...$more): void
{
    work($spender, ...$more);
}

/* For 1 to 9 ms: what repeats every 10 ms is in step with 97 samples a second. */
function work(callable $spender, ...$more): void
{
    $spender(mt_rand(1000, 9000) / 1e6, ...$more);
}

function both(callable $spender, ...$more): void
{
    $spent = ['a' => 0.0, 'b' => 0.0];
    $before = now();
    while (true) {
        $turn = $spent['a'] * 7 <= $spent['b'] * 3 ? 'a' : 'b';
        $turn($spender, ...$more);
        $now = now();
        $spent[$turn] += $now - $before;
        $before = $now;
    }
}

/* A generator each, resumed by turns. */
function turns(string $name)
{
    while (true) {
        $name('spend');
        yield;
    }
}

function generators(): void
{
    $turns = ['a' => turns('a'), 'b' => turns('b')];
    $spent = ['a' => 0.0, 'b' => 0.0];
    while (true) {
        $turn = $spent['a'] * 7 <= $spent['b'] * 3 ? 'a' : 'b';
        $before = now();
        $turns[$turn]->next();
        $spent[$turn] += now() - $before;
    }
}

if ($argv[1] === 'generators') {
    generators();
} elseif ($argv[1] === 'recursive') {
    both('spend_deep', 30);
} else {
    both('spend');
}
