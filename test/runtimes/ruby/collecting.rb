# Collects garbage for as long as it lives.
def collect
  loop { GC.start }
end

collect
