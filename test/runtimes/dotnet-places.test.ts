/** Where code that was compiled ahead comes from, as the runtime itself says it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { afterEach, expect, it } from 'vitest';
import { fdSource } from '../../agent/files/fd-source.ts';
import type { ProcessMemory } from '../../agent/interpreters/contract.ts';
import { precompiledPlaceOf } from '../../agent/interpreters/dotnet/debug-info.ts';
import { type DotnetFile, detectDotnet } from '../../agent/interpreters/dotnet/detect-dotnet.ts';
import type { DotnetLayout } from '../../agent/interpreters/dotnet/layout.ts';
import { type MethodToken, readMethodDesc } from '../../agent/interpreters/dotnet/method-desc.ts';
import { dotnet as plugin } from '../../agent/interpreters/dotnet/plugin.ts';
import { precompiledMapOf } from '../../agent/interpreters/dotnet/precompiled-map.ts';
import {
  findSection,
  lookUp,
  methodInImage,
  type Section,
} from '../../agent/interpreters/dotnet/sections.ts';
import { CannotRead, RuntimeMemory, wordAt } from '../../agent/interpreters/runtime-memory.ts';
import { parseElf } from '../../common/elf/elf.ts';
import { eachOf } from '../support/each-of.ts';
import { findDotnets, runAssembly } from './dotnets.ts';

const BUCKET_BYTES = 64;
const SLOTS = 4;

interface Mapping {
  start: number;
  offset: number;
  path: string;
}

let child: ChildProcess | undefined;
afterEach(() => child?.kill('SIGKILL'));

function memoryOf(pid: number): ProcessMemory {
  const fd = openSync(`/proc/${pid}/mem`, 'r');
  return {
    read(address, length) {
      const bytes = new Uint8Array(length);
      try {
        return bytes.subarray(0, readSync(fd, bytes, 0, length, address));
      } catch {
        // not mapped
        return undefined;
      }
    },
  };
}

const codeOf = (pid: number): Mapping[] =>
  [...readFileSync(`/proc/${pid}/maps`, 'utf8').matchAll(/^(\w+)-\w+ r-xp (\w+) \S+ \d+ +(\/.+)$/gm)].map(
    ([, start, offset, path]) => ({
      start: Number.parseInt(start!, 16),
      offset: Number.parseInt(offset!, 16),
      path: path!,
    }),
  );

function attach(memory: ProcessMemory, code: readonly Mapping[]): DotnetLayout {
  const { start, offset, path } = code.find((mapping) => mapping.path.endsWith('/libcoreclr.so'))!;
  const fd = openSync(path, 'r');
  const facts: DotnetFile = detectDotnet(parseElf(fdSource(fd)))!;
  closeSync(fd);
  return plugin.attach!(memory, start - offset, facts)!.facts as DotnetLayout;
}

/** Undefined for what is not a method, as places of the map that are free. */
function tokenOf(memory: RuntimeMemory, layout: DotnetLayout, methodDesc: number): MethodToken | undefined {
  try {
    const token = readMethodDesc(memory, layout, methodDesc);
    return typeof token === 'string' ? undefined : token;
  } catch (error) {
    if (error instanceof CannotRead) return undefined;
    throw error;
  }
}

/** Where the code of a method's instances begins: all of the image's map is read for it. */
function startsOf(memory: RuntimeMemory, layout: DotnetLayout, { module }: Section, row: number): number[] {
  const buckets = memory.word(memory.word(module + layout.precompiled.info) + layout.precompiled.buckets);
  const starts: number[] = [];
  for (let i = 1; i <= memory.word(buckets); i++) {
    const bucket = memory.view(buckets + i * BUCKET_BYTES, BUCKET_BYTES);
    for (let slot = 0; slot < SLOTS; slot++) {
      const start = wordAt(bucket, slot * 8);
      const token = tokenOf(memory, layout, lookUp(memory, buckets, start) ?? 0);
      if (token?.row === row && token.module === module) starts.push(start);
    }
  }
  return starts;
}

eachOf(findDotnets)('$title', (dotnet) => {
  it('says of methods that were compiled ahead what is read of them', { timeout: 60_000 }, async () => {
    const { command, environment } = runAssembly(dotnet, 'chain.dll');
    const env = { ...environment, DOTNET_TieredCompilation: '0', KNOWN_TRACE: 'stay' };
    child = spawn(command[0]!, [...command.slice(1), 'library'], {
      stdio: ['ignore', 'pipe', 'ignore'],
      env,
    });
    let said = '';
    while (!said.includes('\ntold')) said += String((await once(child.stdout!, 'data'))[0]);
    const code = codeOf(child.pid!);
    const layout = attach(memoryOf(child.pid!), code);
    const memory = new RuntimeMemory(memoryOf(child.pid!));
    let compared = 0;
    for (const [, name, row, il, native] of said.matchAll(/^(System\.\S+\.dll) (\d+) (\d+) (\d+)$/gm)) {
      const image = code.find(({ path }) => path.endsWith(`/${name}`));
      const section = image && findSection(memory, layout, image.start);
      if (!section) continue;
      const places = startsOf(memory, layout, section, Number(row)).map((start) => {
        const found = methodInImage(memory, layout, section, start)!;
        const map = precompiledMapOf(memory, layout, section, found)!;
        const offset = Number(native) - 1;
        return precompiledPlaceOf(memory, { methodDesc: found.methodDesc, map, offset }).ilOffset;
      });
      // of a generic method there may be several
      expect(places, `${name} ${row}`).toContain(Number(il));
      compared++;
    }
    expect(compared).toBeGreaterThanOrEqual(3);
  });
});
