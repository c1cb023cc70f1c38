<?php
/* Runs a scenario by its name: prints its own stack as PHP sees it, leaf first, each frame [name, file, line], and burns
 * CPU time there for as long as it lives. The line of the leaf changes, so it is 0. */

function frames(): array
{
    $frames = [];
    $place = ['', 0];
    foreach (array_slice(debug_backtrace(), 1) as $entry) {
        $name = in_array($entry['function'], ['include', 'require']) ? '{main}' : $entry['function'];
        if ($name === 'eval') $name = '{eval}';
        if (isset($entry['class'])) $name = $entry['class'] . '::' . $name;
        $frames[] = [$name, basename($place[0]), $place[1]];
        // called from C: no place, and a frame of the function that is written in C comes next
        $place = [$entry['file'] ?? '', $entry['line'] ?? 0];
    }
    $frames[] = ['{main}', basename($place[0]), $place[1]];
    return $frames;
}

function say(array $frames): void
{
    $frames[0][1] = basename(__FILE__);
    // as JSON, for which 7.4 needs a module
    $quoted = fn($text) => '"' . addcslashes($text, '"\\') . '"';
    $texts = array_map(fn($f) => '[' . $quoted($f[0]) . ',' . $quoted($f[1]) . ',' . $f[2] . ']', $frames);
    echo '[' . implode(',', $texts) . "]\n";
}

function burn(): void
{
    say(frames());
    $x = 1;
    while (true) {
        for ($i = 0; $i < 1000; $i++) {
            $x = ($x * 31 + $i) & 0xffff;
        }
    }
}

/** Some 100 us, in which whoever calls has to be caught. */
function burn_briefly(): void
{
    static $has_said = false;
    if (!$has_said) {
        say(frames());
        $has_said = true;
    }
    for ($i = 0, $x = 1; $i < 10000; $i++) {
        $x = ($x * 31 + $i) & 0xffff;
    }
}

function recursion(int $n): int
{
    if ($n === 0) {
        burn();
    }
    return recursion($n - 1) + 1;
}

class Shape
{
    public function run(): void
    {
        self::inside(fn() => static::draw());
    }

    private static function inside(callable $what): void
    {
        $what();
    }

    public static function draw(): void
    {
        burn();
    }

    public function __get(string $name)
    {
        burn();
    }

    public function __call(string $name, array $arguments)
    {
        burn();
    }

    public function __toString(): string
    {
        burn();
    }

    public function __destruct()
    {
        if (($GLOBALS['argv'][1] ?? '') === 'destructor') {
            burn();
        }
    }
}

function numbers()
{
    yield 1;
    burn();
    yield 2;
}

function outer_numbers()
{
    yield from numbers();
}

function compare($a, $b): int
{
    burn();
    return 0;
}

function in_finally(): void
{
    try {
        throw new Exception('x');
    } catch (Exception $e) {
        burn();
    } finally {
        count([]);
    }
}

spl_autoload_register(function (string $class): void {
    burn();
});

$scenarios = [
    'recursion' => fn() => recursion(50),
    'deep' => fn() => recursion(400),
    'methods' => fn() => (new Shape())->run(),
    'callback' => fn() => array_map(fn($x) => Shape::draw(), [1]),
    'sort' => function () {
        $list = [3, 1, 2];
        usort($list, 'compare');
    },
    'regular_expression' => fn() => preg_replace_callback('/b/', function ($m) {
        burn();
    }, 'abc'),
    'generator' => function () {
        foreach (numbers() as $n);
    },
    'delegating' => function () {
        foreach (outer_numbers() as $n);
    },
    'resumed' => function () {
        $numbers = numbers();
        $numbers->current();
        $numbers->next();
    },
    'magic_get' => fn() => (new Shape())->missing,
    'magic_call' => fn() => (new Shape())->missing(),
    'to_string' => fn() => 'x' . new Shape(),
    'destructor' => function () {
        $shape = new Shape();
        unset($shape);
    },
    'exception' => fn() => in_finally(),
    'autoload' => fn() => new Missing\Name(),
    'included' => fn() => include __DIR__ . '/included.php',
    'evaluated' => fn() => eval('burn();'),
    'fleeting' => function () {
        while (true) array_map(function ($x) {
            burn_briefly();
        }, [1]);
    },
    'evaluated_briefly' => function () {
        while (true) eval('burn_briefly();');
    },
    'internal' => fn() => array_map('array_map', [function ($x) {
        burn();
    }], [[1]]),
];
if (PHP_VERSION_ID >= 80100) {
    $scenarios['fiber'] = fn() => (new Fiber(function () {
        burn();
    }))->start();
}

$scenarios[$argv[1]]();
