local M = {}
local Cart = {}
Cart.__index = Cart

function Cart.new()
  return setmetatable({ items = {}, total = 0 }, Cart)
end

function Cart:add(name, price, count)
  self.items[#self.items + 1] = string.format("%s x%d: %.2f", name, count, price)
  self.total = self.total + price * count
end

local function in_order(a, b)
  return a < b
end

local function render(cart)
  table.sort(cart.items, in_order)
  return table.concat(cart.items, "\n")
end

function M.decorate(body)
  local function double(number)
    return tostring(2 * tonumber(number))
  end
  local text = body:gsub("x(%d+)", double)
  return text
end

function M.handle()
  local cart = Cart.new()
  for i = 1, 200 do
    cart:add("item" .. i, i * 1.5, i % 4 + 1)
  end
  ngx.say(render(cart))
end

return M
