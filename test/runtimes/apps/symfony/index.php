<?php
require '/usr/share/php/Symfony/Bundle/FrameworkBundle/autoload.php';

use Symfony\Bundle\FrameworkBundle\FrameworkBundle;
use Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;
use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;
use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Kernel;
use Symfony\Component\Routing\Loader\Configurator\RoutingConfigurator;

class Price
{
    public function of(int $order): float
    {
        $sum = 0;
        for ($n = 1; $n <= $order; $n++)
            $sum += sqrt($n);
        return $sum;
    }
}

class Shop extends Kernel
{
    use MicroKernelTrait;

    public function registerBundles(): iterable
    {
        return [new FrameworkBundle()];
    }

    protected function configureContainer(ContainerConfigurator $container): void
    {
        $container->extension('framework', ['secret' => 'none']);
    }

    protected function configureRoutes(RoutingConfigurator $routes): void
    {
        $routes->add('orders', '/orders')->controller([$this, 'orders']);
    }

    public function orders(): Response
    {
        $price = new Price();
        return new Response(implode("\n", array_map([$price, 'of'], range(1, 300))));
    }

    public function getProjectDir(): string
    {
        return '/tmp/symfony';
    }
}

$kernel = new Shop('prod', false);
$request = Request::createFromGlobals();
$response = $kernel->handle($request);
$response->send();
$kernel->terminate($request, $response);
