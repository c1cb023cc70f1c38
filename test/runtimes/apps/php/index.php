<?php
class Price
{
    public static function of(int $order): float
    {
        $sum = 0;
        for ($n = 1; $n <= $order; $n++)
            $sum += sqrt($n);
        return $sum;
    }
}

function orders(int $count): array
{
    return array_map(fn (int $order) => number_format(Price::of($order), 2), range(1, $count));
}

echo implode("\n", orders(300));
