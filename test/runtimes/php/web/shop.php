<?php
namespace My;

enum Size: int {
    case Large = 3;

    public function price(int $n): int {
        $sum = 0;
        for ($i = 0; $i < 20000; $i++) $sum = ($sum + $i * $n) % 7919;
        return $sum;
    }
}

final class Shop {
    public int $total { get => Size::Large->price(1); }

    public function handle(): int {
        $prices = array_map(fn ($n) => Size::Large->price($n) + $this->total, range(1, 20));
        return array_sum($prices);
    }
}

echo (new Shop)->handle();
