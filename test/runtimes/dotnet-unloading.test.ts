/** Assemblies that are loaded where others were unloaded: plug-ins, scripts. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { eachOf } from '../support/each-of.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { findDotnets, runAssembly } from './dotnets.ts';

const COPIES = ['Reload01', 'Reload02', 'Reload03', 'Reload04'];
const LIMIT_MS = 60_000;

eachOf(findDotnets)('$title', (dotnet) => {
  it(
    'shows each by its name',
    async () => {
      const recording = await Recording.start({ targets: [], samplesPerSecond: 499 });
      dotnet.place(join(import.meta.dirname, 'dotnet/reloaded.dll'));
      const { command, environment } = runAssembly(dotnet, 'reload.dll');
      const child = spawn('nice', ['-n', '5', ...command], {
        env: { ...process.env, ...environment },
        stdio: ['pipe', 'ignore', 'inherit'],
      });
      const shown = (name: string): boolean =>
        recording.stacks(child.pid).some(({ frames }) => frames.includes(`${name}.Turn`));
      try {
        recording.controller.addTarget(toPid(child.pid!));
        for (const name of COPIES) {
          await recording.until(() => shown(name), LIMIT_MS);
          expect(COPIES.filter(shown)).toEqual(COPIES.slice(0, COPIES.indexOf(name) + 1));
          child.stdin.write('.');
        }
      } finally {
        child.kill('SIGKILL');
        await recording.stop();
      }
    },
    LIMIT_MS * COPIES.length,
  );
});
