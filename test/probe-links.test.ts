/**
 * Probes in user code by one link for each program, file and kind, and one by one as on kernels without such links; a place
 * that the kernel refuses leaves the others.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { loadNative, useNative } from '../agent/base/native.ts';
import { EventProbes } from '../agent/events/event-probes.ts';
import { type EventSpec, parseEvent } from '../agent/events/event-spec.ts';
import { sampledEvents } from '../agent/events/event-types.ts';
import { Tracer } from '../agent/tracer/tracer.ts';
import { createFileWorkers } from '../agent/workers/file-workers.ts';
import { missingRights, scratchFolder } from './support/fixtures.ts';

const native = loadNative();
const workers = createFileWorkers();
afterAll(() => workers.stop());
afterEach(() => useNative(native));

const PLACES = 40;

/** A note of a probe without arguments, as sys/sdt.h has it, at an instruction. */
const place = (instruction: string): string[] => [
  ...[`990: ${instruction}`, '.pushsection .note.stapsdt,"","note"', '.balign 4'],
  ...['.4byte 992f-991f,994f-993f,3', '991: .asciz "stapsdt"', '992: .balign 4', '993: .8byte 990b,0,0'],
  ...['.asciz "shop","sold",""', '994: .balign 4', '.popsection'],
];

/** Waits for its input to end, passes its places, and ends. */
function compileShop(name: string, bad: readonly string[] = []): string {
  const program = join(scratchFolder, name);
  const lines = [
    `.rept ${PLACES / 2}`,
    ...place('nop'),
    '.endr',
    ...bad,
    `.rept ${PLACES / 2}`,
    ...place('nop'),
    '.endr',
  ];
  const code = lines.map((line) => JSON.stringify(`${line}\n`)).join(' ');
  const input = `#include <unistd.h>
__attribute__((noinline)) static void trade(void) { asm volatile(${code} ::: "memory"); }
int main() { char c; read(0, &c, 1); trade(); }`;
  execFileSync('gcc', ['-o', program, '-x', 'c', '-'], { input });
  return program;
}

/** How many links this process has to code of users, by their type: newer kernels tell those at returns apart. */
function countLinks(): { perf: number; multi: number } {
  const texts = readdirSync('/proc/self/fdinfo')
    .map((fd) => `/proc/self/fdinfo/${fd}`)
    // the descriptor of the folder itself is closed by now
    .filter((path) => existsSync(path))
    .map((path) => readFileSync(path, 'utf8'));
  const having = (type: RegExp): number => texts.filter((text) => type.test(text)).length;
  return { perf: having(/^link_type:\s*perf$/m), multi: having(/^link_type:\s*u(ret)?probe_multi$/m) };
}

/** How often each event happened while the program ran, by what links, and what was told. */
async function count(program: string, events: readonly string[]) {
  const specs: EventSpec[] = events.map((event) => parseEvent(event));
  const warnings: string[] = [];
  const warn = (message: string): void => void warnings.push(message);
  const tracer = new Tracer(
    {
      ...{
        samplesPerSecond: 20,
        sendIdleFrames: false,
        maxUserFrames: 127,
        maxTableBytes: 4 << 20,
        runtimes: [],
      },
      ...sampledEvents({ events: { specs, budget: 100 }, samplesPerSecond: 20, sendIdleFrames: false }),
    },
    { onRecord: () => {} },
    warn,
  );
  const probes = new EventProbes(workers, tracer.otherEvents!, warn);
  const process = spawn(program, { stdio: ['pipe', 'ignore', 'inherit'] });
  try {
    await tracer.start();
    await probes.start(tracer.otherEvents!.specs);
    const links = countLinks();
    process.stdin.end();
    await once(process, 'exit');
    tracer.otherEvents!.stop();
    const counts = tracer.otherEvents!.totals().map(({ events }) => events);
    return { counts, links, left: countLinks(), warnings, stats: probes.stats };
  } finally {
    process.kill();
    await probes.stop();
    await tracer.stopSampling();
    await tracer.close();
  }
}

describe.skipIf(missingRights).each([
  ['by one link for all places', true],
  ['by a link for each place', false],
])('probes %s', (_, uprobeMulti) => {
  const isKnown = !uprobeMulti || native.hasUprobeMulti();
  if (!isKnown) console.log('skipped: no uprobe_multi on this kernel');
  const linksOf = (together: number, apart: number) =>
    uprobeMulti ? { perf: 0, multi: together } : { perf: apart, multi: 0 };

  it.runIf(isKnown)('count what happens, and leave no link', async () => {
    useNative({ ...native, hasUprobeMulti: () => uprobeMulti });
    const program = compileShop('shop');
    const { counts, ...found } = await count(program, [
      `usdt:${program}:shop:sold`,
      `uretprobe:${program}:trade`,
    ]);
    expect(counts).toEqual([PLACES, 1]);
    expect(found).toMatchObject({ links: linksOf(3, PLACES + 2), left: { perf: 0, multi: 0 }, warnings: [] });
  });

  it.runIf(isKnown && process.arch === 'x64')('stand without one that the kernel refuses', async () => {
    useNative({ ...native, hasUprobeMulti: () => uprobeMulti });
    const program = compileShop('shop-with-lock', place('lock addl $0, -8(%%rsp)'));
    const event = `usdt:${program}:shop:sold`;
    const { counts, links, warnings, stats } = await count(program, [event]);
    expect(counts).toEqual([PLACES]);
    expect(stats).toMatchObject({ sites: PLACES, refused: 1 });
    // one of 41, found by halving
    expect(links).toEqual(linksOf(5, PLACES));
    const why = 'the kernel can run no such instruction apart';
    const told = `${event}: the kernel refuses 1 of its ${PLACES + 1} probes: ${program}+0x`;
    expect(warnings).toEqual([
      expect.stringMatching(new RegExp(`^${told.replaceAll('+', '\\+')}\\w+ \\(${why}\\)$`)),
    ]);
  });
});
