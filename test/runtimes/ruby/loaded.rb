def from_loaded
  burn
  1
end

from_loaded
