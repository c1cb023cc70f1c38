/** PHP in Apache (mod_php), whose workers are forked: in the whole matrix. */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { missingRights } from '../support/fixtures.ts';
import { type Recording, type Stack, share, total } from '../support/recording.ts';
import { recordApache } from './apache.ts';
import { fetchPackages, isWholeMatrix, ROOTS } from './package-roots.ts';

const SAMPLES = 100;
const PRICE = 'My\\Size::price';
/** Leaf first: what calls the function that takes time, and through what. */
const HOOK = [PRICE, 'My\\Shop::$total::get'];
const CHAIN = [
  /^My\\Shop::\{closure:My\\Shop::handle\(\):18\}$/,
  /^array_map$/,
  /^My\\Shop::handle$/,
  /^\{main\}$/,
  /^zend_execute_script$/,
  /^ap_run_handler$/,
  /^main$/,
];

const root =
  missingRights || !isWholeMatrix
    ? undefined
    : fetchPackages(join(ROOTS, 'mod-php'), 'trixie', ['apache2-bin', 'libapache2-mod-php8.4']);
if (!isWholeMatrix) console.log('skipped: mod_php, only `npm run test:runtimes` fetches it');

describe.skipIf(root === undefined)('Apache with mod_php', () => {
  let recording: Recording;
  let stop: (() => Promise<void>) | undefined;

  const isPriced = ({ frames }: Stack): boolean => frames.includes(PRICE);
  const follows = ({ frames }: Stack): boolean => {
    let at = -1;
    return CHAIN.every((name) => {
      at = frames.findIndex((frame, i) => i > at && name.test(frame));
      return at >= 0;
    });
  };

  beforeAll(async () => {
    const place = {
      root: root!,
      web: join(import.meta.dirname, 'php/web'),
      url: 'http://127.0.0.1:18998/shop.php',
    };
    const wanted = { isCounted: isPriced, isWhole: follows, samples: SAMPLES };
    ({ recording, stop } = await recordApache(place, wanted));
  }, 120_000);

  afterAll(() => stop?.());

  it('shows functions between those of Apache and of PHP that run them', () => {
    expect(share(recording.stacks().filter(isPriced), follows)).toBeGreaterThan(0.97);
  });

  it('shows hooks of properties as PHP names them', () => {
    const isOfHook = ({ frames }: Stack): boolean => frames.includes(HOOK[1]!);
    const ofHook = recording.stacks().filter(isOfHook);
    expect(total(ofHook)).toBeGreaterThan(SAMPLES / 4);
    expect(share(ofHook, ({ frames }) => frames.indexOf(HOOK[1]!) > frames.indexOf(HOOK[0]!))).toBe(1);
  });
});
