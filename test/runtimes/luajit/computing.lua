print("computing")
io.stdout:flush()

local function leaf(x)
  for i = 1, 1e12 do x = (x * 31 + i) % 65536 end
  return x
end

local function inner(x)
  local r = leaf(x)
  return r
end

local resume = coroutine.wrap(function()
  local ok, r = pcall(inner, 1)
  return r
end)
resume()
