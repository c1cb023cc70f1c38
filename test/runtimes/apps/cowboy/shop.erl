-module(shop).
-export([main/0, init/2]).

main() ->
    {ok, _} = application:ensure_all_started(cowboy),
    Routes = cowboy_router:compile([{'_', [{"/orders", ?MODULE, []}]}]),
    {ok, _} = cowboy:start_clear(shop, [{ip, {127, 0, 0, 1}}, {port, 18800}], #{env => #{dispatch => Routes}}),
    receive never -> ok end.

init(Request, State) ->
    Page = orders(300),
    {ok, cowboy_req:reply(200, #{<<"content-type">> => <<"text/plain">>}, Page, Request), State}.

orders(Count) ->
    lists:map(fun(Order) -> [price(Order), $\n] end, lists:seq(1, Count)).

price(Order) ->
    float_to_binary(sum(Order, 0.0), [{decimals, 2}]).

sum(0, Sum) -> Sum;
sum(N, Sum) -> sum(N - 1, Sum + math:sqrt(N)).
