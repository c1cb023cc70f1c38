<?php
require '/usr/share/php/Illuminate/autoload.php';

use Illuminate\Container\Container;
use Illuminate\Events\Dispatcher;
use Illuminate\Http\Request;
use Illuminate\Pipeline\Pipeline;
use Illuminate\Routing\Controller;
use Illuminate\Routing\Router;

class OrderController extends Controller
{
    public function index(): string
    {
        return collect(range(1, 600))->map(fn (int $order) => self::price($order))->implode("\n");
    }

    public static function price(int $order): float
    {
        $sum = 0;
        for ($n = 1; $n <= $order; $n++)
            $sum += sqrt($n);
        return $sum;
    }
}

$container = new Container();
Container::setInstance($container);
$router = new Router(new Dispatcher($container), $container);
$router->get('/orders', [OrderController::class, 'index']);
$router->dispatch(Request::capture())->send();
