import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AddonError, loadAddon } from './native.ts';
import { packageRoot } from './package-root.ts';

const BUILT = join(packageRoot(), 'build/everyframe.node');

describe('an addon that cannot be loaded', () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'everyframe-addon-'));
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  const failure = (write: (path: string) => void): AddonError => {
    const path = join(directory, 'everyframe.node');
    write(path);
    try {
      loadAddon(path);
    } catch (error) {
      return error as AddonError;
    }
    throw new Error('it was loaded');
  };

  it('names the library that is missing, and its packages', () => {
    const error = failure((path) =>
      // as it is where libbpf is not installed
      writeFileSync(
        path,
        readFileSync(BUILT, 'latin1').replace(/libbpf\.so\.1\0/, 'libbpf.so.7\0'),
        'latin1',
      ),
    );
    expect(error).toBeInstanceOf(AddonError);
    expect(error.problem).toMatch(/everyframe\.node needs libbpf\.so\.7, which is not installed$/);
    expect(error.fix).toMatch(/apt-get install libbpf1 .*dnf install libbpf/);
    expect(error.message).toBe(`${error.problem}: ${error.fix}`);
  });

  it('is built again where it is broken', () => {
    const error = failure((path) => writeFileSync(path, 'no ELF file'));
    expect(error.problem).toMatch(
      /everyframe\.node can't be loaded: .*(?:file too short|invalid ELF header)/,
    );
    expect(error.fix).toMatch(/npm run setup/);
  });

  it('is built where there is none', () => {
    const error = failure(() => {});
    expect(error.problem).toMatch(/everyframe\.node is not built$/);
    expect(error.fix).toBe('npm run setup');
  });

  it('is none that can', () => {
    expect(loadAddon(BUILT)).toHaveProperty('Reader');
    copyFileSync(BUILT, join(directory, 'copy.node'));
    expect(loadAddon(join(directory, 'copy.node'))).toHaveProperty('Reader');
  });
});
