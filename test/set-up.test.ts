/** The set-up and the launcher of a built checkout, as a person calls them. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'everyframe-set-up-'));
  chmodSync(folder, 0o755);
});
afterEach(() => rmSync(folder, { recursive: true }));

const run = (command: string, args: string[], options: { path?: string; cwd?: string } = {}) =>
  spawnSync(command, args, {
    encoding: 'utf8',
    timeout: 60_000,
    cwd: options.cwd ?? ROOT,
    env: { ...process.env, PATH: options.path ?? process.env['PATH'] },
  });

/** Takes the place of a symbolic link; writing through it would change the system's own program. */
function writeScript(path: string, body: string): void {
  rmSync(path, { force: true });
  writeFileSync(path, `#!/bin/sh\n${body}\n`);
  chmodSync(path, 0o755);
}

/** A PATH with all of /usr/bin and /bin but what `left` names. */
function makePathWithout(left: RegExp): string {
  const linked = new Set<string>();
  for (const directory of ['/usr/local/bin', '/usr/bin', '/bin']) {
    for (const name of readdirSync(directory)) {
      if (left.test(name) || linked.has(name)) continue;
      symlinkSync(join(directory, name), join(folder, name));
      linked.add(name);
    }
  }
  return folder;
}

describe('scripts/setup.sh', () => {
  it('says nothing and calls neither apt nor npm where nothing is to do', () => {
    const witness = join(folder, 'called');
    for (const name of ['apt-get', 'npm'])
      writeScript(join(folder, name), `echo "${name} $*" >>'${witness}'; exit 1`);
    const result = run('scripts/setup.sh', ['--test'], { path: `${folder}:${process.env['PATH']}` });
    expect(result).toMatchObject({ status: 0, stdout: '', stderr: '' });
    expect(existsSync(witness)).toBe(false);
  });

  if (process.getuid?.() !== 0)
    console.log('skipped: packages that are missing, Ctrl-C under npm (needs root)');
  it.runIf(process.getuid?.() === 0)('names the packages to ask for where it may not install them', () => {
    const path = makePathWithout(/^(clang|llvm-strip)/);
    writeScript(join(folder, 'id'), 'echo 1000');
    expect(run('scripts/setup.sh', [], { path })).toMatchObject({
      status: 1,
      stdout: '',
      stderr:
        'set-up: these packages are missing, and installing them needs root. Run\n' +
        '  sudo apt-get install -y clang llvm\nand then this again.\n',
    });
  });

  it('names the tools on a distribution without apt', () => {
    const path = makePathWithout(/^(clang|apt-get)/);
    expect(run('scripts/setup.sh', [], { path })).toMatchObject({
      status: 1,
      stderr:
        "set-up: install these with your distribution's package manager, then run this again:\n" +
        '  - clang, 14 or newer\n',
    });
  });

  it('refuses an old Node', () => {
    const path = makePathWithout(/^node$/);
    writeScript(join(folder, 'node'), 'echo v18.20.4');
    expect(run('scripts/setup.sh', [], { path })).toMatchObject({
      status: 1,
      stderr: 'set-up: Node v18.20.4 is too old: install Node 20.19 or newer\n',
    });
  });
});

describe('bin/everyframe', () => {
  it('works through a symbolic link and from any directory', () => {
    symlinkSync(join(ROOT, 'bin/everyframe'), join(folder, 'ef'));
    const result = run('./ef', ['doctor', '--json'], { cwd: folder });
    expect(result.stderr).toBe('');
    expect(result.stdout).toContain('"name":"kernel"');
  });

  it('passes the exit code and the signal through', () => {
    const main = join(folder, 'dist/cli');
    mkdirSync(main, { recursive: true });
    cpSync(join(ROOT, 'bin'), join(folder, 'bin'), { recursive: true });
    writeFileSync(
      join(main, 'main.js'),
      `if (process.argv[2] === 'kill') process.kill(process.pid, 'SIGTERM'), setInterval(() => {}, 1000);
       else process.exitCode = Number(process.argv[2]);`,
    );
    expect(run(join(folder, 'bin/everyframe'), ['42'])).toMatchObject({ status: 42, signal: null });
    expect(run(join(folder, 'bin/everyframe'), ['kill'])).toMatchObject({ status: null, signal: 'SIGTERM' });
  });

  it('says how to build what is not built', () => {
    cpSync(join(ROOT, 'bin'), join(folder, 'bin'), { recursive: true });
    const result = run(join(folder, 'bin/everyframe'), []);
    expect(result.status).toBe(1);
    expect(result.stderr).toContain(`run 'npm run setup' in ${folder}`);
  });

  it.runIf(process.getuid?.() === 0)('takes the two signals of one Ctrl-C under npm for one', async () => {
    const listen = ['grpc', 'http', 'page'].flatMap((name) => [`--${name}-listen`, '127.0.0.1:0']);
    const child = spawn(join(ROOT, 'bin/everyframe'), ['run', ...listen], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const exited = once(child, 'exit');
    try {
      let printed = '';
      for await (const chunk of child.stderr) {
        printed += chunk;
        if (printed.includes('"page":')) break;
      }
      child.kill('SIGINT');
      child.kill('SIGTERM'); // two that the kernel does not make one of
      expect(await exited).toEqual([0, null]);
    } finally {
      child.kill('SIGKILL');
    }
  });
});
