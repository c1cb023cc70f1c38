# split.rb SHAPE: spends 30 % of its CPU time in a() and 70 % in b(), by its own clock, for ever.

def now
  Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
end

# The same native leaf below both.
def spend(seconds)
  finish = now + seconds
  (1..500).sum { |n| n } while now < finish
  nil
end

def spend_deep(seconds, depth = 30)
  depth == 0 ? spend(seconds) : spend_deep(seconds, depth - 1)
  nil
end

def a(spender)
  work(spender)
  nil
end

def b(spender)
  work(spender)
  nil
end

# For 1 to 9 ms: what repeats every 10 ms is in step with 97 samples a second.
def work(spender)
  send(spender, rand(0.001..0.009))
  nil
end

def both(spender)
  spent = { a: 0.0, b: 0.0 }
  before = now
  loop do
    turn = spent[:a] * 7 <= spent[:b] * 3 ? :a : :b
    send(turn, spender)
    after = now
    spent[turn] += after - before
    before = after
  end
end

# A fiber each, resumed by turns.
def fibers
  spent = { a: 0.0, b: 0.0 }
  fibers = %i[a b].to_h { |name| [name, Fiber.new { loop { send(name, :spend); Fiber.yield } }] }
  loop do
    turn = spent[:a] * 7 <= spent[:b] * 3 ? :a : :b
    before = now
    fibers[turn].resume
    spent[turn] += now - before
  end
end

case ARGV[0]
when 'fibers' then fibers
when 'recursive' then both(:spend_deep)
else both(:spend)
end
