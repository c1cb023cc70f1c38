# A thread that compresses, without the lock, next to one that has it.
require 'zlib'

DATA_TO_COMPRESS = Random.new(1).bytes(1 << 20)

def compress
  loop { Zlib::Deflate.deflate(DATA_TO_COMPRESS, 9) }
end

def spin
  x = 0
  loop { x += 1 }
end

Thread.new { compress }.name = 'compresses'
spin
