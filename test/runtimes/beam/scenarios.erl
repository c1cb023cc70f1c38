%% Erlang processes that stay in a known place. Each prints its stack as Erlang itself has it, leaf first, and goes on with
%% the leaf, which it calls on the same line: [scenario, [function, file, line]...].
-module(scenarios).
-export([main/0, main/1, root/1]).
-export([init/1, handle_call/3, handle_cast/2, spin/1, hash/2, compare/2, shape/1, applied/1]).

%% Functions of C count as little: left to themselves their callers would have all of the time.
%% A number of which the compiler knows nothing: what can never end is jumped to, too.
-define(NEXT(N), begin put(n, ((N) + 1) rem 100), get(n) end).
-define(COUNT, erlang:bump_reductions(100)).

names() ->
    [chain, deep, variables, bif, compared, trying, catching, server, garbage, binaries, maps, tables, comprehension,
     closures, applying, waiting, numbers, 'quoted name', regex, records, dirty, mailed].

main() -> main(names()).

main(Names) ->
    erlang:system_flag(backtrace_depth, 400),
    [spawn(?MODULE, root, [Name]) || Name <- Names],
    receive never -> ok end.

%% Who waits for messages has no use for its turns: with the others' priority it would have next to no time.
root(Name) ->
    register(Name, self()),
    process_flag(priority, case Name of mailed -> normal; mailing -> normal; _ -> low end),
    R = scenario(Name),
    {Name, R}.

scenario(chain) -> R = a(1, chain), R + 1;
scenario(deep) -> R = even(50), R + 1;
scenario(variables) -> R = many(lists:seq(1, 40)), R + 1;
scenario(bif) -> R = in_bif(lists:seq(1, 2000)), R + 1;
scenario(compared) -> R = in_comparison(lists:seq(1, 1000)), R + 1;
scenario(trying) -> R = try_it(1), R + 1;
scenario(catching) -> R = catch_it(1), {R, 1};
scenario(server) -> R = serve(), R + 1;
scenario(garbage) -> R = litter(1), R + 1;
scenario(binaries) -> R = bits(<<1:80000>>), R + 1;
scenario(maps) -> R = in_maps(1), R + 1;
scenario(tables) -> R = in_tables(1), R + 1;
scenario(comprehension) -> R = [spinning(X, comprehension) || X <- [1]], [1 | R];
scenario(closures) -> R = closures(1), R + 1;
scenario(applying) -> R = apply(?MODULE, applied, [1]), R + 1;
scenario(waiting) -> R = wait_first(), R + 1;
scenario(numbers) -> R = in_numbers(1), R + 1;
scenario('quoted name') -> R = 'a quoted name'(1), R + 1;
scenario(regex) -> R = in_regex(1), R + 1;
scenario(records) -> R = shapes(1), R + 1;
scenario(dirty) -> R = in_dirty(1), R + 1;
scenario(mailed) -> R = in_mail(1), R + 1;
scenario(mailing) -> feed(lists:seq(1, 10000)).

%% The leaf, and who calls it.
here(Name, Leaf) ->
    {current_stacktrace, [_Here | Callers]} = erlang:process_info(self(), current_stacktrace),
    Frames = [frame(F) || F <- [{?MODULE, Leaf, arity, []} || Leaf =/= none] ++ Callers],
    io:put_chars(["[", text(Name), [[",", F] || F <- Frames], "]\n"]).

frame({M, F, _, []}) when M =:= ?MODULE, is_tuple(F) ->
    {Name, Arity} = F,
    ["[", text(io_lib:format("~tp:~tp/~p", [M, Name, Arity])), ",\"scenarios.erl\",0]"];
frame({M, F, A, Place}) ->
    File = filename:basename(proplists:get_value(file, Place, "")),
    Line = proplists:get_value(line, Place, 0),
    ["[", text(io_lib:format("~tp:~tp/~p", [M, F, A])), ",", text(File), ",", integer_to_list(Line), "]"].

text(Name) when is_atom(Name) -> text(atom_to_list(Name));
text(Text) -> ["\"", string:replace(lists:flatten(Text), "\"", "\\\"", all), "\""].

%% Without the first clause the compiler would know that it never returns, and make its callers jump to it. A process has its
%% turn for 4,000 calls: it is long enough that hardly a sample is of the change to the next one.
spin(-1) -> 0;
spin(N) -> spin(((((N * 31 + 7) rem 65537 * 13 + 5) rem 65521 * 37 + 3) rem 65519 * 41 + 1) rem 65536).

spinning(N, Name) -> here(Name, {spin, 1}), R = spin(N), R + 1.

a(N, Name) -> R = b(N, Name), R + 1.
b(N, Name) -> R = lists:map(fun(X) -> c(X, Name) + 1 end, [N]), hd(R).
c(N, Name) -> R = spinning(N, Name), R + 1.

%% Erlang shows 64 frames, and a caller that is twice in succession once only.
even(0) -> R = spinning(1, deep), R + 1;
even(N) -> R = odd(N - 1), R + 1.
odd(N) -> R = even(N - 1), R + 1.

%% Forty variables are alive across the call.
many([A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12, A13, A14, A15, A16, A17, A18, A19, A20, A21, A22, A23, A24, A25, A26,
      A27, A28, A29, A30, A31, A32, A33, A34, A35, A36, A37, A38, A39, A40]) ->
    R = spinning(A1, variables),
    [R, A40, A39, A38, A37, A36, A35, A34, A33, A32, A31, A30, A29, A28, A27, A26, A25, A24, A23, A22, A21, A20, A19, A18, A17,
     A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2].

in_bif(L) -> here(bif, {hash, 2}), R = hash(L, 1), R + 1.
hash(_, -1) -> 0;
hash(L, N) -> ?COUNT, hash(L, ?NEXT(N + erlang:phash2(L))).

in_comparison(L) -> here(compared, {compare, 2}), R = compare({L}, {[X || X <- L]}), R + 1.
compare(none, _) -> 0;
compare(A, B) -> ?COUNT, case A < B of true -> 1; false -> compare(B, A) end.

try_it(N) ->
    try
        R = spinning(N, trying),
        R + 1
    catch
        error:_ -> 0
    after
        self()
    end.

catch_it(N) -> R = (catch spinning(N, catching)), {R, N}.

serve() -> {ok, P} = gen_server:start(?MODULE, [], []), R = gen_server:call(P, go, infinity), R + 1.
init(S) -> process_flag(priority, low), {ok, S}.
handle_call(go, _, S) -> R = spinning(1, server), {reply, R, S}.
handle_cast(_, S) -> {noreply, S}.

litter(N) -> here(garbage, {make_garbage, 2}), R = make_garbage(N, []), R + 1.
make_garbage(-1, _) -> 0;
make_garbage(N, Kept) -> make_garbage(?NEXT(N), case Kept of [A, B, C | _] -> [{N, [A | N]}, A, B, C]; _ -> [N | Kept] end).

bits(B) -> here(binaries, {count, 3}), R = count(B, 0, B), R + 1.
%% Much for one call: a turn has so many calls.
count(<<A:5, B:11, C:13, D:3, E:7, F:9, G:5, H:11, Rest/bits>>, N, All) ->
    count(Rest, N + A + B + C + D + E + F + G + H, All);
count(_, -1, _) -> 0;
count(_, N, All) -> count(<<All/binary>>, ?NEXT(N), All).

in_maps(N) -> here(maps, {change, 2}), R = change(N, maps:from_list([{X, X} || X <- lists:seq(0, 101)])), R + 1.
change(-1, _) -> 0;
change(N, Map) -> change(?NEXT(N), Map#{N => {N, maps:get(N + 1, Map)}}).

in_tables(N) -> T = ets:new(?MODULE, [set]), here(tables, {store, 2}), R = store(N, T), R + 1.
store(-1, _) -> 0;
store(N, T) -> ets:insert(T, {N, N}), [_ | _] = ets:lookup(T, N), store(?NEXT(N), T).

closures(N) ->
    put(inner, fun(Y) -> R = spinning(Y + N, closures), R + N end),
    put(outer, fun(X) -> R = (get(inner))(X), R + N end),
    R = (get(outer))(N),
    R + 1.

applied(N) -> R = spinning(N, applying), R + 1.

wait_first() -> self() ! go, receive go -> R = spinning(1, waiting), R + 1 end.

in_numbers(N) -> here(numbers, {convert, 1}), R = convert(N), R + 1.
convert(-1) -> 0;
convert(N) -> ?COUNT, case integer_to_list((N + 1) bsl 4000) of [] -> 0; _ -> convert(?NEXT(N)) end.

'a quoted name'(N) -> R = spinning(N, 'quoted name'), R + 1.

in_regex(N) -> here(regex, {match, 2}), R = match(N, lists:duplicate(400, $a)), R + 1.
match(-1, _) -> 0;
match(N, Text) -> ?COUNT, binary:match(list_to_binary(Text), <<"b">>), match(?NEXT(N), Text).

shapes(N) -> here(records, {shape, 1}), R = shape(N), R + 1.
shape(-1) -> 0;
shape(N) when is_integer(N) -> shape({point, N, N});
shape({point, X, Y}) -> shape(?NEXT(X + Y + trunc(math:sqrt(X * 1.5)))).

%% Long enough for a thread that runs functions of C alone.
in_dirty(N) -> here(dirty, {collect, 2}), R = collect(N, lists:seq(1, 100000)), R + 1.
collect(-1, _) -> 0;
collect(N, L) -> erlang:garbage_collect(), collect(?NEXT(N), L).

%% The garbage of what others send is collected before it has its turn again.
in_mail(N) -> here(mailed, {mail, 1}), spawn(?MODULE, root, [mailing]), R = mail(N), R + 1.
mail(-1) -> 0;
mail(N) -> receive {From, L} -> From ! length(L), mail(?NEXT(N)) end.
feed([]) -> 0;
feed(L) -> mailed ! {self(), L}, receive _ -> feed(L) end.
