-- split.lua [interpreter] SHAPE: spends 30 % of its CPU time in a() and 70 % in b(), by its own clock, for ever.
local shape = arg[#arg]
if jit and arg[1] == "interpreter" then jit.off() end

-- The same leaf below both.
local function spend(seconds)
  local finish = os.clock() + seconds
  local sum = 0
  repeat
    for i = 1, 500 do sum = (sum * 31 + i) % 65536 end
  until os.clock() >= finish
  return sum
end

local function spend_deep(seconds, depth)
  if depth == 30 then
    local r = spend(seconds)
    return r
  end
  local r = spend_deep(seconds, (depth or 0) + 1)
  return r
end

-- In a coroutine that is resumed again and again.
local function spend_resumed(seconds)
  local steps = coroutine.wrap(function()
    for _ = 1, 4 do
      spend(seconds / 4)
      coroutine.yield()
    end
  end)
  for _ = 1, 4 do steps() end
end

-- For 1 to 9 ms: what repeats every 10 ms is in step with 97 samples a second.
local function work(spender)
  local r = spender(0.001 + math.random() * 0.008)
  return r
end

local function a(spender)
  local r = work(spender)
  return r
end

local function b(spender)
  local r = work(spender)
  return r
end

local function both(spender)
  local in_a, in_b, before = 0, 0, os.clock()
  while true do
    local is_a = in_a * 7 <= in_b * 3
    if is_a then a(spender) else b(spender) end
    local now = os.clock()
    if is_a then in_a = in_a + now - before else in_b = in_b + now - before end
    before = now
  end
end

both(({ leaf = spend, recursive = spend_deep, coroutines = spend_resumed })[shape])
