/** A known chain of calls in TypeScript: hash <- digest <- Request.handle <- tick. */
interface Options {
  readonly rounds: number;
}

// types and comments move all that follows to other lines than it runs at
type Seed = number & { readonly seed: unique symbol };

function hash(rounds: number, seed: Seed): number {
  let sum: number = seed;
  for (let i = 0; i < rounds; i++) {
    sum = (sum * 31 + i) | 0;
  }
  return sum;
}

const digest = ({ rounds }: Options): number => {
  let total = 0;
  for (let seed = 0; seed < 1000; seed++) {
    total ^= hash(rounds, seed as Seed);
  }
  return total;
};

class Request {
  readonly #options: Options;

  constructor(options: Options) {
    this.#options = options;
  }

  handle(): number {
    return digest(this.#options);
  }
}

function tick(): void {
  const request: Request = new Request({ rounds: 20_000 });
  request.handle();
  setImmediate(tick);
}

setImmediate(tick);
