# As scenarios.erl, in Elixir: each process prints its stack as Elixir has it, leaf first, and goes on with the leaf.
defmodule Shop.Cart do
  use GenServer

  def main do
    :erlang.system_flag(:backtrace_depth, 60)
    names = [:enum, :comprehension, :server, :question, :operator, :rescued, :streamed, :nested]
    for name <- names, do: spawn(__MODULE__, :root, [name])
    Process.sleep(:infinity)
  end

  def root(name) do
    r = scenario(name)
    {name, r}
  end

  def scenario(:enum), do: 1 + (Enum.map([1], fn x -> 1 + spinning(x, :enum) end) |> hd())
  def scenario(:comprehension), do: 1 + hd(for x <- [1], do: 1 + spinning(x, :comprehension))
  def scenario(:question), do: {:ok, empty?(1)}
  def scenario(:operator), do: {:ok, 1 <~> 2}
  def scenario(:rescued), do: {:ok, rescued(1)}
  def scenario(:streamed), do: 1 + (Stream.map([1], &(1 + spinning(&1, :streamed))) |> Enum.sum())
  def scenario(:nested), do: 1 + Enum.reduce([1], 0, fn x, _ -> Enum.sum(Enum.map([x], fn y -> 1 + spinning(y, :nested) end)) end)

  def scenario(:server) do
    {:ok, pid} = GenServer.start(__MODULE__, nil)
    {:ok, GenServer.call(pid, :go, :infinity)}
  end

  @impl true
  def init(state), do: {:ok, state}
  @impl true
  def handle_call(:go, _, state), do: {:reply, 1 + spinning(1, :server), state}

  def empty?(n), do: 1 + spinning(n, :question)
  def a <~> _b, do: 1 + spinning(a, :operator)

  def rescued(n) do
    1 + spinning(n, :rescued)
  rescue
    _ -> 0
  end

  def spinning(n, name) do
    here(name); r = spin(n)
    r + 1
  end

  # Without the first clause the compiler would know that it never returns.
  def spin(-1), do: 0
  def spin(n), do: spin(rem(rem(rem(n * 31 + 7, 65537) * 13 + 5, 65521) * 37 + 3, 65519))

  defp here(name) do
    {:current_stacktrace, [_, _ | callers]} = Process.info(self(), :current_stacktrace)
    frames = Enum.map([{__MODULE__, :spin, 1, file: ~c"scenarios.exs", line: 0} | callers], &frame/1)
    IO.puts(["[", text(Atom.to_string(name)), Enum.map(frames, &[",", &1]), "]"])
  end

  defp frame({module, function, arity, place}) do
    mfa =
      if match?("Elixir." <> _, Atom.to_string(module)),
        do: Exception.format_mfa(module, function, arity),
        else: to_string(:io_lib.format("~tp:~tp/~p", [module, function, arity]))

    ["[", text(mfa), ",", text(Path.basename(to_string(place[:file] || ""))), ",", "#{place[:line] || 0}]"]
  end

  defp text(text), do: ["\"", String.replace(text, "\"", "\\\""), "\""]
end

Shop.Cart.main()
