%% Spends 30 % of its CPU time in a() and 70 % in b(), by its own clock, for ever.
-module(split).
-export([main/1]).

main([Shape]) -> both(spender(Shape), now_ms(), 0, 0).

%% Milliseconds of the VM's user time, which the kernel tells from system time by what its ticks meet: exact only where next to no
%% time goes to the system, such as to asking for the time.
now_ms() -> {Total, _} = erlang:statistics(runtime), Total.

both(Spend, Before, A, B) when A * 7 =< B * 3 -> a(Spend), Now = now_ms(), both(Spend, Now, A + Now - Before, B);
both(Spend, Before, A, B) -> b(Spend), Now = now_ms(), both(Spend, Now, A, B + Now - Before).

%% What they return makes them callers: one that returns what it was given jumps.
a(Spend) -> {a, work(Spend)}.
b(Spend) -> {b, work(Spend)}.

%% For 1 to 9 ms: what repeats every 10 ms is in step with 97 samples a second.
work(Spend) -> [Spend(now_ms() + rand:uniform(9))].

spender(leaf) -> fun spend/1;
spender(recursive) -> fun(End) -> spend_deep(End, 30) end;
spender(closures) -> fun(End) -> lists:foreach(fun(_) -> spend(End) end, [1]), ok end.

%% The same leaf below both.
spend(End) ->
    count(30000),
    case now_ms() < End of
        true -> spend(End);
        false -> ok
    end.

count(0) -> ok;
count(N) -> count(N - 1).

spend_deep(End, 0) -> spend(End);
spend_deep(End, Depth) -> [spend_deep(End, Depth - 1)].
