-- embedded.lua MODULE PROGRAM: with a module that is written in C, and with functions of C that are called by FFI.
local module = package.loadlib(arg[1], "luaopen_module")()
local programs = {}

local function spin()
  local x = 0
  while true do
    for i = 1, 1000 do x = (x * 31 + i) % 65536 end
  end
  return x
end

function programs.module()
  local function back()
    local r = module.burn()
    return r
  end
  local r = module.call(back)
  return r
end

function programs.threads()
  module.threads([[
    local function spin()
      local x = 0
      while true do
        for i = 1, 1000 do x = (x * 31 + i) % 65536 end
      end
      return x
    end
    local functions = {}
    function functions.first() local r = spin() return r end
    function functions.second() local r = spin() return r end
    local name = ...
    jit[name == "first" and "on" or "off"]()
    if name == "first" then functions.first() else functions.second() end
  ]], "first", "second")
end

function programs.callback()
  local ffi = require("ffi")
  ffi.cdef("void qsort(void *, size_t, size_t, int (*)(const void *, const void *));")
  local function compare()
    local r = spin()
    return r
  end
  local list = ffi.new("int[2]")
  local back = ffi.cast("int (*)(const void *, const void *)", compare)
  ffi.C.qsort(list, 2, 4, back)
end

-- What has nothing that can fail is inlined without a trace of it; comparisons can.
function programs.inlined()
  local function inner(x)
    if x > 40000 then return math.sin(x) + math.sin(x + 1) end
    return math.exp(x / 65536) + math.exp(x / 65537)
  end
  local function outer()
    local sum, x = 0, 1
    for i = 1, 1e9 do
      x = (x * 31 + 7) % 65536
      sum = sum + inner(x)
    end
    return sum
  end
  local r = outer()
  return r
end

-- A trace that calls C.
function programs.allocating()
  local function make(n)
    local made
    for i = 1, n do made = { "x" .. i, made and made[1] } end
    return made
  end
  while true do make(1e5) end
end

programs[arg[2]]()
