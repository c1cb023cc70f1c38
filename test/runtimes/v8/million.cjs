const { writeSync } = require('node:fs');
function descend(n) {
  if (n > 0) return descend(n - 1) + 1;
  writeSync(1, 'deep\n');
  for (let x = 1; ; x = (x * 31 + 7) | 0) if (x === 0.5) return x;
}
descend(1_000_000);
