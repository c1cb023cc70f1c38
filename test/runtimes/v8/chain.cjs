// A known chain of calls: leaf <- c <- arrow <- Array.prototype.map <- b <- a <- tick <- Node's timers.
function leaf(n) {
  let sum = 0;
  for (let i = 0; i < n; i++) sum = (sum + i * n) | 0;
  return sum;
}

function c(n) {
  let total = 0;
  for (;;) {
    total = (total + leaf(n)) | 0;
  }
}

function b(n) {
  return [n].map((x) => c(x))[0];
}

function a(n) {
  return b(n);
}

function tick() {
  a(20000);
}

setTimeout(tick, 1);
