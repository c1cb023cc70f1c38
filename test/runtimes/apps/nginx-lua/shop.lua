local shop = {}

local function price(order)
  local sum = 0
  for n = 1, order do sum = (sum * 31 + math.sqrt(n)) % 65536 end
  return sum
end

local function orders(count)
  local lines = {}
  for order = 1, count do
    local amount = price(order)
    lines[order] = string.format("%.2f", amount)
  end
  return lines
end

function shop.answer()
  local lines = orders(300)
  ngx.say(table.concat(lines, "\n"))
end

return shop
