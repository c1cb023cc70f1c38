/** Stack deltas against binutils' readelf, over what Debian ships. */
import { existsSync, realpathSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { hasTool } from '../support/fixtures.ts';
import { compareFile } from './compare-file.ts';

const LIBRARIES =
  `libc.so.6 ld-linux-x86-64.so.2 libm.so.6 libmvec.so.1 libgcc_s.so.1 libstdc++.so.6 libcrypto.so.3
  libssl.so.3 libz.so.1 liblzma.so.5 libzstd.so.1 libpcre2-8.so.0 libselinux.so.1 libsystemd.so.0 libgnutls.so.30
  libgmp.so.10 libsqlite3.so.0 libglib-2.0.so.0 libapt-pkg.so.6.0 libunistring.so.2 libicuuc.so.72 libncursesw.so.6
  libperl.so.5.36 libpython3.11.so.1.0 libbpf.so.1 libelf.so.1 libgcrypt.so.20 libcurl.so.4`
    .split(/\s+/)
    .flatMap((name) => ['x86_64', 'aarch64'].map((arch) => `/usr/lib/${arch}-linux-gnu/${name}`));
/** Debian's packages for cross-compilers, on a machine of another processor. */
const ARM64_LIBRARIES =
  `libc.so.6 ld-linux-aarch64.so.1 libm.so.6 libresolv.so.2 libnsl.so.1 libthread_db.so.1 libmemusage.so
  libc_malloc_debug.so.0 libgcc_s.so.1 libstdc++.so.6`
    .split(/\s+/)
    .map((name) => `/usr/aarch64-linux-gnu/lib/${name}`);
const PROGRAMS = 'bash perl git gcc-12 gdb systemctl dash openssl ssh tar'
  .split(' ')
  .map((name) => `/usr/bin/${name}`);
const files = [...LIBRARIES, ...ARM64_LIBRARIES, ...PROGRAMS]
  .filter(existsSync)
  .map((path) => realpathSync(path));

describe.skipIf(!hasTool('readelf'))('against readelf --debug-dump=frames-interp', () => {
  it('has files to compare', () => expect(files.length).toBeGreaterThan(5));

  it.each(files)('%s', async (path) => {
    const comparison = await compareFile(path);
    expect(comparison?.badFdes).toBe(0);
    expect(comparison?.compared).toBeGreaterThan(0);
    expect(comparison?.differences).toEqual([]);
  });
});
