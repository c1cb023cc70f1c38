import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { findUser } from './collector-user.ts';

const directory = mkdtempSync(join(tmpdir(), 'everyframe-user-'));
const passwd = join(directory, 'passwd');
afterAll(() => rmSync(directory, { recursive: true }));

it('finds a user', () => {
  writeFileSync(passwd, 'root:x:0:0::/root:/bin/sh\nsome:x:123:45::/:/bin/false\n');
  expect(findUser('some', passwd)).toEqual({ name: 'some', uid: 123, gid: 45 });
  expect(() => findUser('other', passwd)).toThrow(`--user other: ${passwd} has no such user`);
});

it('knows nobody where nothing else is known', () => {
  const nobody = { name: 'nobody', uid: 65_534, gid: 65_534 };
  expect(findUser('nobody', passwd)).toEqual(nobody);
  expect(findUser('nobody', `${passwd}.none`)).toEqual(nobody);
});
