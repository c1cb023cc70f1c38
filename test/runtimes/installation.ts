/** Whose packages are installed here. */
import { readFileSync } from 'node:fs';
import process from 'node:process';

/** `Debian bookworm`, for what is installed here; `Debian bookworm, arm64`. */
export function describeInstallation(): string {
  const release = readFileSync('/etc/os-release', 'utf8');
  const field = (name: string): string => new RegExp(`^${name}="?(.*?)"?$`, 'm').exec(release)?.[1] ?? '';
  const origin = [field('NAME').split(' ')[0], field('VERSION_CODENAME')].filter((text) => text !== '');
  return `${origin.join(' ')}${process.arch === 'x64' ? '' : `, ${process.arch}`}`;
}
