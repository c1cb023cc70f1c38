-- scenarios.lua MODE SCENARIO: calls functions in the way of the scenario, prints which as Lua says it, leaf first, and computes in the innermost
-- one. MODE is jit or interpreter; for Lua of PUC-Rio it does not matter.
local mode, scenario = arg[1], arg[2]
if jit and mode == "interpreter" then jit.off() end
local loadstring, unpack = loadstring or load, unpack or table.unpack
local folder = arg[0]:match("^(.*)/[^/]*$") or "."
package.path = folder .. "/?.lua"

-- what is not called by a name of its own
local names = {}

-- Of what has resumed the coroutine: Lua does not say that.
local resumers = {}

local function frames(level)
  local lines = {}
  for i = level + 1, 200 do
    local info = debug.getinfo(i, "Slnf")
    if not info then break end
    local name = names[info.func] or info.name
    if info.what == "main" then
      name = "(main)"
    elseif info.what ~= "C" and not name then
      name = "(anonymous:" .. info.linedefined .. ")"
    end
    if name and info.what ~= "tail" then
      local file = info.what == "C" and "" or info.short_src:match("[^/]*$")
      lines[#lines + 1] = ('["%s","%s",%d]'):format(name, file:gsub('"', '\\"'), math.max(info.currentline, 0))
    end
  end
  return lines
end

local function describe(level)
  local lines = frames(level + 1)
  for _, line in ipairs(resumers) do lines[#lines + 1] = line end
  print("[" .. table.concat(lines, ",") .. "]")
  io.stdout:flush()
end

local function spin()
  describe(2)
  local x = 0
  while true do
    for i = 1, 1000 do x = (x * 31 + i) % 65536 end
  end
  return x
end

READY = function()
  local result = spin()
  return result
end

local scenarios = {}

function scenarios.calls()
  local function inner() local r = spin() return r end
  local function middle()
    local r = inner()
    return r
  end
  local r = middle()
  return r
end

function scenarios.protected()
  local function risky()
    local r = spin()
    return r
  end
  names[risky] = "risky"
  local ok, r = pcall(risky)
  return r
end

function scenarios.handler()
  local function on_error()
    local r = spin()
    return r
  end
  local function fails() local r = nil + 1 return r end
  names[on_error] = jit and "(anonymous:" .. debug.getinfo(on_error, "S").linedefined .. ")" or "__add"
  names[fails] = "fails"
  local ok, r = xpcall(fails, on_error)
  return r
end

function scenarios.tail()
  local function last() local r = spin() return r end
  local function first() return last() end
  names[last] = jit and "first"
  local r = first()
  return r
end

function scenarios.callback()
  local function replace() local r = spin() return r end
  names[replace] = "replace"
  local r = string.gsub("x", ".", replace)
  return r
end

function scenarios.sort()
  local function compare(a, b) local r = spin() return r end
  names[compare] = "compare"
  local list = { 2, 1, 3 }
  table.sort(list, compare)
  return list
end

function scenarios.method()
  local class = {}
  class.__index = class
  function class:run(times)
    local r = spin()
    return r
  end
  local object = setmetatable({}, class)
  local r = object:run(1)
  return r
end

function scenarios.metamethods()
  local object = setmetatable({}, {
    __index = function(self, key)
      local r = spin()
      return r
    end,
    __add = function(self, other)
      local r = self.missing
      return r
    end,
  })
  names[getmetatable(object).__index] = "__index"
  names[getmetatable(object).__add] = "__add"
  local r = object + 1
  return r
end

function scenarios.vararg()
  local function many(...)
    local r = spin(...)
    return r
  end
  local r = many(1, 2, 3)
  return r
end

function scenarios.iterator()
  local function items(state, at) local r = spin() return r end
  names[items] = "items"
  for i in items, {}, 0 do
    return i
  end
end

function scenarios.recursion()
  local function down(n)
    if n == 0 then
      local r = spin()
      return r
    end
    local r = down(n - 1)
    return r
  end
  local r = down(100)
  return r
end

function scenarios.module()
  local loaded = require("loaded")
  local function next() local r = spin() return r end
  local r = loaded.enter(next)
  return r
end

function scenarios.loading()
  local chunk = loadfile(folder .. "/loaded.lua")
  local r = chunk("loading")
  return r
end

function scenarios.text()
  local chunk = loadstring("local r = READY()\nreturn r")
  local r = chunk()
  return r
end

function scenarios.destructor()
  local function finalize()
    local r = spin()
    return r
  end
  -- from 5.3.4 on; before 5.4.3 Lua itself names the function that was interrupted so
  local has_name = false
  local function tell()
    has_name = debug.getinfo(1, "n").name == "__gc" or debug.getinfo(2, "n").name == "__gc"
  end
  for _ = 1, 2 do
    setmetatable({}, { __gc = tell })
  end
  collectgarbage()
  names[collectgarbage] = "collectgarbage" -- 5.3 takes it for the finalizer
  names[finalize] = has_name and "__gc" or "(anonymous:" .. debug.getinfo(finalize, "S").linedefined .. ")"
  local collected = newproxy and newproxy(true)
  if collected then
    getmetatable(collected).__gc = finalize
  else
    setmetatable({}, { __gc = finalize })
  end
  collected = nil
  collectgarbage()
end

local function resume(thread)
  local caller = frames(1)
  local own = debug.getinfo(1, "l").currentline + 2
  resumers = { '["resume","",0]', ('["again","scenarios.lua",%d]'):format(own), unpack(caller, 2) }
  local _, r = coroutine.resume(thread)
  return r
end

function scenarios.coroutine()
  local function task()
    coroutine.yield(1)
    local r = spin()
    return r
  end
  local thread = coroutine.create(task)
  coroutine.resume(thread)
  local again = resume
  local r = again(thread)
  return r
end

local run = scenarios[scenario]
if run then
  run()
else
  local list = {}
  for name in pairs(scenarios) do list[#list + 1] = name end
  table.sort(list)
  print(table.concat(list, ","))
end
