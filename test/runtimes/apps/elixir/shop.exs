# Orders come from a process of their own, which Erlang's HTTP server asks.
defmodule Shop.Prices do
  use GenServer

  def init(state), do: {:ok, state}

  def handle_call({:orders, count}, _from, state) do
    {:reply, orders(count), state}
  end

  def orders(count) do
    Enum.map(1..count, fn order -> [price(order), ?\n] end)
  end

  def price(order) do
    sum = Enum.reduce(1..order, 0.0, fn n, sum -> sum + :math.sqrt(n) end)
    :erlang.float_to_binary(sum, decimals: 2)
  end
end

defmodule Shop do
  def unquote(:do)(_request) do
    page = GenServer.call(Shop.Prices, {:orders, 1000})
    head = [code: 200, content_length: Integer.to_charlist(IO.iodata_length(page))]
    {:proceed, [response: {:response, head, page}]}
  end
end

{:ok, _} = GenServer.start(Shop.Prices, nil, name: Shop.Prices)
:ok = :inets.start()
tmp = ~c"/tmp"

{:ok, _} =
  :inets.start(:httpd,
    bind_address: {127, 0, 0, 1},
    port: 18800,
    server_name: ~c"shop",
    server_root: tmp,
    document_root: tmp,
    modules: [Shop]
  )

Process.sleep(:infinity)
