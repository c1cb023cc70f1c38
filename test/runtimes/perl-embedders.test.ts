/** Perl in other programs: one that calls a function of it, and, in the whole matrix, Apache with mod_perl, whose workers are forked. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { compile, hasTool, missingRights } from '../support/fixtures.ts';
import { Recording, type Stack, share, total } from '../support/recording.ts';
import { recordApache } from './apache.ts';
import { fetchPackages, isWholeMatrix, ROOTS } from './package-roots.ts';

const URL = 'http://127.0.0.1:18999/shop';
const SAMPLES = 100;
/** Leaf first: what calls the function that takes time, and through what. */
const CHAIN = [
  'My::Shop::price',
  'Perl_runops_standard',
  'Perl_sortsv_flags',
  'My::Shop::handler',
  'Perl_runops_standard',
  'Perl_call_sv',
  'modperl_callback',
  'ap_run_handler',
  'main',
];

/** Headers and library of the machine's Perl; undefined, and a printed reason, where there are none. */
function findLibrary(): { headers: string; library: string } | undefined {
  const { stdout } = spawnSync('perl', ['-MConfig', '-e', 'print "$Config{archlibexp} $Config{libperl}"'], {
    encoding: 'utf8',
  });
  const [folder = '', name = ''] = (stdout ?? '').split(' ');
  const found = { headers: join(folder, 'CORE'), library: join(folder, '../..', name) };
  if (hasTool('gcc') && existsSync(join(found.headers, 'perl.h')) && existsSync(found.library)) return found;
  console.log('skipped: no gcc, or no libperl to make a program with Perl of');
  return undefined;
}

const library = missingRights ? undefined : findLibrary();

describe.skipIf(library === undefined)('a program with libperl', () => {
  it('that has the number of its pthread key in memory of its own shows functions', async () => {
    const flags = [
      '-O2',
      '-w',
      '-Wl,--no-as-needed',
      '-D_GNU_SOURCE',
      `-I${library!.headers}`,
      library!.library,
    ];
    const path = compile('embeds-perl', 'gcc', flags, 'embeds-perl.c');
    const script = join(import.meta.dirname, 'perl/busy.pl');
    const child = spawn('nice', ['-n', '19', path, script], { stdio: 'ignore' });
    const recording = await Recording.start({ targets: [toPid(child.pid!)] });
    try {
      const calls = ['main::spend', 'main::busy', 'Perl_runops_standard', 'Perl_call_sv'];
      const follows = ({ frames }: Stack): boolean =>
        frames.join().includes(calls.join()) && frames.includes('main');
      await recording.until((stacks) => stacks.some(follows));
      recording.clear();
      await recording.until((stacks) => total(stacks) >= SAMPLES);
      const other = recording.stacks().find((stack) => !follows(stack));
      // at its beginning and its end spend() has no context
      expect(share(recording.stacks(), follows), other?.frames.join('\n')).toBeGreaterThan(0.9);
    } finally {
      child.kill('SIGKILL');
      await recording.stop();
    }
  }, 60_000);
});

const root =
  missingRights || !isWholeMatrix
    ? undefined
    : fetchPackages(join(ROOTS, 'mod-perl'), 'bookworm', ['apache2-bin', 'libapache2-mod-perl2']);
if (!isWholeMatrix) console.log('skipped: mod_perl, only `npm run test:runtimes` fetches it');

describe.skipIf(root === undefined)('Apache with mod_perl', () => {
  let recording: Recording;
  let stop: (() => Promise<void>) | undefined;

  const isPriced = ({ frames }: Stack): boolean => frames.includes(CHAIN[0]!);
  const follows = ({ frames }: Stack): boolean => {
    let at = -1;
    return CHAIN.every((name) => {
      at = frames.indexOf(name, at + 1);
      return at >= 0;
    });
  };

  beforeAll(async () => {
    const place = { root: root!, web: join(import.meta.dirname, 'perl/web'), url: URL };
    const wanted = { isCounted: isPriced, isWhole: follows, samples: SAMPLES };
    ({ recording, stop } = await recordApache(place, wanted));
  }, 120_000);

  afterAll(() => stop?.());

  it('shows handlers between the functions of Apache and of Perl that run them', () => {
    const priced = recording.stacks().filter(isPriced);
    const other = priced.find((stack) => !follows(stack));
    expect(share(priced, follows), other?.frames.join('\n')).toBeGreaterThan(0.97);
  });
});
