// Calls from a loop that Maglev compiles twice: `near` is inlined at two places, `far` is too long for that.
function near(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) sum = (sum + i * n) | 0;
  return sum;
}

function far(n) {
  let [a, b, c, d, e, f, g, h] = [1, 2, 3, 4, 5, 6, 7, 8];
  for (let i = 0; i < n; i++) {
    a = (a + b * i) | 0;
    b = (b ^ (c + i)) | 0;
    c = (c + d * i) | 0;
    d = (d ^ (e + i)) | 0;
    e = (e + f * i) | 0;
    f = (f ^ (g + i)) | 0;
    g = (g + h * i) | 0;
    h = (h ^ (a + i)) | 0;
  }
  return a + b + c + d + e + f + g + h;
}

function both(n) {
  let total = 0;
  for (let k = 0; k < n; k++) {
    total = (total + near(1000)) | 0;
    total ^= k;
    total = (total + far(300)) | 0;
    total ^= n;
    total = (total + near(2000)) | 0;
  }
  return total;
}

function tick() {
  both(500);
  setImmediate(tick);
}

tick();
