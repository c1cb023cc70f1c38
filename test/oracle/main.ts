/**
 * `npm run test:oracle [-- --set SET … --every N | FOLDER…]`: compares the stack deltas of every ELF file under /usr/bin,
 * /usr/lib and /usr/sbin, and of hundreds of packages of other Debians and of arm64, with what readelf says of them.
 * Writes what it comes to into docs/oracle.md, a set at a time; fails where there is a difference. With --every each
 * N-th file of a set only, and the page says so. With folders, only those, and nothing is written.
 */
import { closeSync, openSync, readdirSync, readFileSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ElfError } from '../../common/elf/elf.ts';
import { compareFile } from './compare-file.ts';
import { unpackPackages } from './packages.ts';
import { addFile, describeGroups, type Group, newGroup, updatePage } from './summary.ts';

const MIN_ELF_BYTES = 64;
const PAGE = new URL('../../../docs/oracle.md', import.meta.url);
/** The release of this machine is compared as it is installed. */
const INSTALLED = 'installed';
const PACKAGE_SETS = {
  'trixie-amd64': ['trixie', 'amd64'],
  'trixie-arm64': ['trixie', 'arm64'],
  'bookworm-arm64': ['bookworm', 'arm64'],
} as const;
const SETS = [INSTALLED, ...(Object.keys(PACKAGE_SETS) as (keyof typeof PACKAGE_SETS)[])] as const;
type SetName = (typeof SETS)[number];

const { values, positionals } = parseArgs({
  options: {
    set: { type: 'string', multiple: true, default: [...SETS] },
    every: { type: 'string', default: '1' },
  },
  allowPositionals: true,
});
const unknown = values.set.filter((name) => !SETS.includes(name as SetName));
if (unknown.length > 0) throw new Error(`--set ${unknown}: unknown, choose from ${SETS.join(', ')}`);
const every = Number(values.every);
if (!(Number.isInteger(every) && every > 0))
  throw new Error(`--every ${values.every}: not a number from 1 on`);

/** Regular files, each once; a link is not followed, what it names is met by itself. */
function* walk(folder: string): Iterable<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* walk(path);
    else if (entry.isFile() && isElf(path)) yield path;
  }
}

function isElf(path: string): boolean {
  const bytes = Buffer.alloc(MIN_ELF_BYTES);
  const fd = openSync(path, 'r');
  try {
    return readSync(fd, bytes) === MIN_ELF_BYTES && bytes.readUInt32LE(0) === 0x464c457f;
  } finally {
    closeSync(fd);
  }
}

async function compareFolders(name: string, folders: readonly string[]): Promise<Group> {
  const group = newGroup(every === 1 ? name : `${name}: one file in ${every}`);
  let met = 0;
  for (const folder of folders) {
    for (const path of walk(folder)) {
      if (met++ % every !== 0) continue;
      try {
        const comparison = await compareFile(path);
        if (!comparison) group.skipped++;
        else if (addFile(group, path.replace(folder, ''), comparison))
          console.error(`${path}: ${comparison.badFdes} bad FDEs, ${comparison.differences.join('\n  ')}`);
      } catch (error) {
        // of another architecture, or 32 bits wide
        if (!(error instanceof ElfError)) throw error;
        group.skipped++;
      }
    }
  }
  console.error(`${name}: ${group.files} files compared, ${group.differences} differences`);
  return group;
}

function compareSet(name: SetName): Promise<Group> {
  if (name === INSTALLED) {
    const release = /^PRETTY_NAME="?([^"\n]*)/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
    return compareFolders(release ?? 'this machine', ['/usr/bin', '/usr/lib', '/usr/sbin']);
  }
  const [suite, architecture] = PACKAGE_SETS[name];
  const folder = unpackPackages(suite, architecture);
  return compareFolders(`packages of Debian ${suite}, ${architecture}`, [folder]);
}

const groups: Group[] = [];
if (positionals.length > 0) groups.push(await compareFolders(positionals.join(' '), positionals));
else {
  for (const name of values.set as SetName[]) {
    const group = await compareSet(name);
    groups.push(group);
    writeFileSync(PAGE, updatePage(readFileSync(PAGE, 'utf8'), group));
  }
}
console.log(describeGroups(groups));
if (groups.some((group) => group.differences > 0 || group.badFdes > 0)) process.exitCode = 1;
