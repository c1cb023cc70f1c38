local M = {}

function M.enter(next)
  local result = next()
  return result
end

if ... == "loading" then
  local result = READY()
end

return M
