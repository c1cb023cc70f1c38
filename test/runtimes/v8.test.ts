/** JavaScript stacks of real Nodes and Denos, in each of V8's tiers, compared with the program's known chain of calls. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { missingRights } from '../support/fixtures.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { findDenos } from './denos.ts';
import { findNodes } from './nodes.ts';
import { countBy, type ScriptFrame, scriptStacks, sum } from './script-frames.ts';

const CHAIN_SCRIPT = join(import.meta.dirname, 'v8/chain.cjs');
const SITES_SCRIPT = join(import.meta.dirname, 'v8/sites.cjs');
const SAMPLES = 60;
/** Node 20 brought Maglev; from 24 on `--no-opt` leaves it on, before that it takes it away as well. */
const TIERS: readonly { tier: string; flags: string[]; from: number }[] = [
  { tier: 'interpreted', flags: ['--no-opt', '--no-sparkplug'], from: 0 },
  { tier: 'baseline', flags: ['--always-sparkplug', '--no-opt'], from: 0 },
  { tier: 'Maglev', flags: ['--no-opt'], from: 24 },
  { tier: 'all tiers', flags: [], from: 0 },
];
const UNOPTIMIZED = ['interpreted', 'baseline'];
const NO_MAGLEV = { flag: '--no-maglev', from: 20, tiers: UNOPTIMIZED };
/** Leaf first: name and line; the leaf's own line changes. */
const CHAIN = [
  'leaf',
  'c chain.cjs:11',
  '<anonymous> chain.cjs:16',
  'map',
  'b chain.cjs:16',
  'a chain.cjs:20',
  'tick chain.cjs:24',
].join('\n');
const WASM_SCRIPT = join(import.meta.dirname, 'v8/wasm.cjs');
/** One is named by the module's names, one by its export, one has no name; the module's own name ends in a hash. */
const WASM_CHAIN = ['leaf sums', 'middle sums', 'wasm-function[4] sums', 'outer sums', 'wasm wasm.cjs'].join(
  '\n',
);
const WASM_IN_JS_SCRIPT = join(import.meta.dirname, 'v8/wasm-in-js.cjs');
/** Node 22 is the first whose V8 inlines WebAssembly into JavaScript. */
const INLINES_WASM = 22;
/** What a call that is no longer one shows: without V8's frame between the two. */
const WASM_IN_JS = 'second lists < walk wasm-in-js.cjs:59';
const JSPI_SCRIPT = join(import.meta.dirname, 'v8/jspi.cjs');
/** Node 24 has it by a flag. */
const JSPI_FROM = 24;
const JSPI = 'burn < promised';
/** The calls in the loop of sites.cjs: two are inlined where the code is optimized, one never is. */
const CALLS = ['far < both:28', 'near < both:26', 'near < both:30'];

/** The functions up to `tick`. */
function chainOf(frames: ScriptFrame[]): string {
  // what the functions call in V8 itself has frames of this kind where V8 has copied its built-in functions
  const own = frames.filter(({ name }) => !name.startsWith('[v8: '));
  const texts = own.map(({ name, file, line }, i) =>
    i === 0 || file === '' ? name : `${name} ${file}:${line}`,
  );
  return texts.slice(0, texts.findIndex((text) => text.startsWith('tick ')) + 1).join('\n');
}

/** The functions up to `wasm`, where it has called one. */
function wasmChainOf(frames: ScriptFrame[]): string | undefined {
  const own = frames.filter(({ name }) => !name.startsWith('[v8: JsToWasm'));
  const texts = own.map(({ name, file }) => `${name} ${file.replace(/-[0-9a-f]+$/, '')}`);
  const end = texts.indexOf('wasm wasm.cjs');
  return end < 1 ? undefined : texts.slice(0, end + 1).join('\n');
}

/** All of JavaScript and WebAssembly from `burn` on; undefined where a stack is not in it. */
function jspiStackOf(frames: ScriptFrame[]): string | undefined {
  const names = frames.map(({ name }) => name);
  return names.includes('burn') ? names.slice(names.indexOf('burn')).join(' < ') : undefined;
}

/** `walk`, and what it has called where that is there. */
function leafOfWalk(frames: ScriptFrame[]): string | undefined {
  const at = frames.findIndex(({ name }) => name === 'walk');
  if (at < 0) return undefined;
  const texts = frames.slice(0, at).map(({ name, file }) => `${name} ${file.replace(/-[0-9a-f]+$/, '')}`);
  return [...texts, `walk ${frames[at]!.file}:${frames[at]!.line}`].join(' < ');
}

/** `both` and what it has called. */
function callOf(frames: ScriptFrame[]): string | undefined {
  const at = frames.findIndex(({ name }) => name === 'both');
  return at < 1 ? undefined : `${frames[at - 1]!.name} < both:${frames[at]!.line}`;
}

const programs = missingRights ? [] : [...findNodes(), ...findDenos()];

describe.skipIf(missingRights).each(programs)('$title', (node) => {
  const { major, build, showsInlined } = node;
  const tiers = TIERS.filter(
    ({ tier, from }) => major >= from && (showsInlined || UNOPTIMIZED.includes(tier)),
  );
  let recording: Recording;

  beforeAll(async () => {
    recording = await Recording.start({ targets: [] });
  });

  afterAll(async () => {
    await recording?.stop();
  });

  /** Samples of a program by their text, from the first with the expected one on. */
  async function record(
    script: { path: string; flags?: string[] },
    expected: string,
    textOf: (frames: ScriptFrame[]) => string | undefined,
  ): Promise<Map<string, number>> {
    const command = [...node.commandWith(script.flags ?? []), node.place(script.path)];
    const child = spawn('nice', ['-n', '19', ...command], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const pid = toPid(child.pid!);
    const counts = () => countBy(scriptStacks(recording, pid, 'v8js'), textOf);
    const showing = (error: Error): never => {
      throw new Error(`${error.message}\nstacks:\n${[...counts()].map(String).join('\n')}`);
    };
    try {
      recording.controller.addTarget(pid);
      await recording.until(() => counts().has(expected), 30_000).catch(showing);
      recording.clear();
      await recording.until(() => sum(counts()) >= SAMPLES).catch(showing);
      return counts();
    } finally {
      child.kill('SIGKILL');
      recording.clear();
    }
  }

  function expectShare(counts: Map<string, number>, expected: readonly string[]): void {
    const right = expected.reduce((total, text) => total + (counts.get(text) ?? 0), 0) / sum(counts);
    const others = [...counts].filter(([text]) => !expected.includes(text)).slice(0, 3);
    const message = `expected\n${expected.join('\nor\n')}\nbut also\n${others.join('\n\n')}`;
    expect(right, message).toBeGreaterThanOrEqual(0.95);
  }

  const flagsOf = ({ tier, flags }: { tier: string; flags: string[] }): string[] =>
    major >= NO_MAGLEV.from && NO_MAGLEV.tiers.includes(tier) ? [...flags, NO_MAGLEV.flag] : flags;

  it.for(tiers)('chain, $tier', async (tier, { task }) => {
    task.meta.build = build;
    expectShare(await record({ path: CHAIN_SCRIPT, flags: flagsOf(tier) }, CHAIN, chainOf), [CHAIN]);
  });

  it('WebAssembly', async ({ task }) => {
    task.meta.build = build;
    expectShare(await record({ path: WASM_SCRIPT }, WASM_CHAIN, wasmChainOf), [WASM_CHAIN]);
  });

  it.runIf(major >= INLINES_WASM && showsInlined)('WebAssembly in JavaScript', async ({ task }) => {
    task.meta.build = build;
    // V8 keeps few positions of it, of some hundred samples one: record() fails where none comes
    const counts = await record({ path: WASM_IN_JS_SCRIPT }, WASM_IN_JS, leafOfWalk);
    expect([...counts.keys()].filter((text) => !text.includes('walk '))).toEqual([]);
  });

  it.runIf(major >= JSPI_FROM && showsInlined)('WebAssembly on a stack of its own', async ({ task }) => {
    task.meta.build = build;
    const flags = major === JSPI_FROM ? ['--experimental-wasm-jspi'] : [];
    expectShare(await record({ path: JSPI_SCRIPT, flags }, JSPI, jspiStackOf), [JSPI]);
  });

  // Deno runs what it has made of a script, in which these are other lines
  it.for(showsInlined ? tiers : [])('calls in a loop, $tier', async (tier, { task }) => {
    task.meta.build = build;
    const counts = await record({ path: SITES_SCRIPT, flags: flagsOf(tier) }, CALLS[2]!, callOf);
    expectShare(counts, CALLS);
    expect([...counts.keys()]).toEqual(expect.arrayContaining(CALLS));
  });
});
