import { expect, test } from 'vitest';
import { nameOf } from './function-names.ts';

test.each([
  ['lists', 'map', 2, 'lists:map/2'],
  ['my mod', "don't", 0, "'my mod':'don\\'t'/0"],
  ['chain', '-b/1-fun-0-', 1, "chain:'-b/1-fun-0-'/1"],
  ['erlang', '+', 2, "erlang:'+'/2"],
  ['naïve', 'größe', 0, 'naïve:größe/0'],
  ['Elixir.Enum', 'map', 2, 'Enum.map/2'],
  ['Elixir.Shop.Cart', 'empty?', 1, 'Shop.Cart.empty?/1'],
  ['Elixir.Shop.Cart', '-total/1-fun-0-', 2, 'anonymous fn/2 in Shop.Cart.total/1'],
  ['Elixir.Shop.Cart', '-empty?/1-fun-3-', 0, 'anonymous fn/0 in Shop.Cart.empty?/1'],
  ['Elixir.Kernel', '<>', 2, 'Kernel.<>/2'],
  ['Elixir.ShopTest', 'test adds up', 1, 'ShopTest."test adds up"/1'],
  ['Elixir.Kernel', 'MACRO-if', 3, 'Kernel.if/2'],
])('%s, %s, %i is %s', (module, name, arity, expected) => {
  expect(nameOf({ module, name, arity })).toBe(expected);
});
