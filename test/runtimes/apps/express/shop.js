const express = require('express');

function price(order) {
  let sum = 0;
  for (let n = 1; n <= order; n++) sum += Math.sqrt(n);
  return sum;
}

function orders(count) {
  return Array.from({ length: count }, (_, order) => ({ order, price: price(order).toFixed(2) }));
}

const app = express();
app.get('/orders', (_request, response) => response.json(orders(2000)));
app.listen(18800, '127.0.0.1');
