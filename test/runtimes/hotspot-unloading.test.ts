/** Classes that are loaded where others were unloaded: an application that is deployed again, scripts, expressions. */
import { spawn } from 'node:child_process';
import { expect, it } from 'vitest';
import { toPid } from '../../common/base/brand.ts';
import { eachOf } from '../support/each-of.ts';
import { Recording } from '../support/recording.ts';
import './builds.ts';
import { compileJava, findJavas, placeClasses } from './javas.ts';

const CLASSES = ['Reload01', 'Reload02', 'Reload03', 'Reload04'];
const LIMIT_MS = 60_000;

eachOf(findJavas)('$title', (java) => {
  it.each([
    ['interpreted', ['-Xint']],
    ['compiled', []],
  ] as const)(
    '%s',
    async (_mode, options) => {
      const recording = await Recording.start({ targets: [], samplesPerSecond: 499 });
      const [program, ...args] = java.command;
      const ofJava = [...options, '-Xmx64m', '-cp', placeClasses(java, compileJava()), 'Reload'];
      const child = spawn('nice', ['-n', '5', program!, ...args, ...ofJava], {
        stdio: ['pipe', 'ignore', 'inherit'],
      });
      const shown = (name: string): boolean =>
        recording.stacks(child.pid).some(({ frames }) => frames.includes(`${name}.turn`));
      try {
        recording.controller.addTarget(toPid(child.pid!));
        for (const name of CLASSES) {
          await recording.until(() => shown(name), LIMIT_MS);
          expect(CLASSES.filter(shown)).toEqual(CLASSES.slice(0, CLASSES.indexOf(name) + 1));
          child.stdin.write('.');
        }
      } finally {
        child.kill('SIGKILL');
        await recording.stop();
      }
    },
    LIMIT_MS * CLASSES.length,
  );
});
