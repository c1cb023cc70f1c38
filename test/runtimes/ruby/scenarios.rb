# Runs a scenario by its name: prints its own stack as Ruby sees it, leaf first, each frame [label, file, line], and burns CPU time
# there for as long as it lives. Of functions that are written in C Ruby gives the caller's place.

def burn
  frames = caller_locations(0).map do |at|
    label = at.label.sub(/.*[#.](?=[^#.]+\z)/) { |prefix| prefix[/\A(block (\(\d+ levels\) )?in |rescue in |ensure in )/].to_s }
    %(["#{label}","#{File.basename(at.path.to_s)}",#{at.lineno.to_i}])
  end
  puts "[#{frames.join(',')}]"
  $stdout.flush
  i = 0
  while true
    i += 1
  end
end

def recursion(n)
  return burn if n == 0
  recursion(n - 1)
  1
end

module Drawn
  def draw
    burn
    1
  end
end

class Shape
  include Drawn

  def run
    [1].each { |x| inside(x) }
    1
  end

  def inside(x)
    Shape.outside(x)
    1
  end

  def self.outside(x)
    burn
    1
  end

  define_method(:defined) do |x|
    burn
    1
  end

  def method_missing(name, *arguments)
    return super unless name == :missing
    burn
    1
  end

  def respond_to_missing?(*)
    true
  end

  def <=>(other)
    burn
    0
  end

  def to_s
    burn
    'x'
  end
end

def rescued
  raise 'x'
rescue StandardError
  burn
end

def ensured
  1
ensure
  burn
end

def numbers
  yield 1
  burn
end

def each_number
  return to_enum(:each_number) unless block_given?
  yield 1
  burn
end

scenarios = {
  'recursion' => -> { recursion(50) },
  'deep' => -> { recursion(400) },
  'methods' => -> { Shape.new.run },
  'mixin' => -> { Shape.new.draw },
  'defined' => -> { Shape.new.defined(1) },
  'missing' => -> { Shape.new.missing },
  'sorted' => -> { [Shape.new, Shape.new].sort },
  'interpolated' => -> { "#{Shape.new}" },
  'rescued' => -> { rescued },
  'ensured' => -> { ensured },
  'yielded' => -> { numbers { |n| n } },
  'nested' => -> { [1].map { |x| [2].each { |y| burn } } },
  'proc' => -> { proc { burn }.call },
  'symbol' => -> { [Shape.new].map(&:run) },
  'evaluated' => -> { eval('burn', binding, 'evaluated.rb', 7) },
  'instance' => -> { Shape.new.instance_eval { burn } },
  'loaded' => -> { load File.join(__dir__, 'loaded.rb') },
  'thread' => -> { Thread.new { burn }.join },
  'fiber' => -> { Fiber.new { burn }.resume },
  'enumerator' => -> { numbers = each_number; numbers.next; numbers.next },
  'ractor' => -> { Ractor.new { Object.send(:burn) }.take },
}
scenarios.fetch(ARGV[0]).call
