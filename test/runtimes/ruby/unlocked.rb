# A thread that reads, which it does without the lock, next to one that has it.
ZEROS = File.open('/dev/zero', 'rb')

def fill(buffer)
  loop { ZEROS.sysread(64 << 20, buffer) }
end

def spin
  x = 0
  loop { x += 1 }
end

Thread.new { fill(+'') }.name = 'fills'
spin
