/** Apache in a folder with its packages, asked again and again; its workers are forked. */
import { spawn } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inRoot } from './package-roots.ts';

/** `web`: a folder with httpd.conf, which finds itself as /tmp/web. The answer ends the server. */
export function startApache(root: string, web: string, url: string): () => void {
  const copy = join(root, 'tmp/web');
  cpSync(web, copy, { recursive: true });
  writeFileSync(join(root, 'dev/null'), '');
  // who its workers become
  writeFileSync(join(root, 'etc/passwd'), 'nobody:x:65534:65534::/:/bin/false\n');
  writeFileSync(join(root, 'etc/group'), 'nogroup:x:65534:\n');
  rmSync(join(copy, 'pid'), { force: true });
  const [program, ...args] = inRoot(root, '/usr/sbin/apache2').command;
  // it ends all of its process group
  const server = spawn(program, [...args, '-DFOREGROUND', '-f', '/tmp/web/httpd.conf'], {
    stdio: 'inherit',
    detached: true,
  });
  let isOver = false;
  void (async () => {
    while (!isOver)
      await fetch(url)
        .then((answer) => answer.text())
        .catch(() => new Promise((resolve) => setTimeout(resolve, 100)));
  })();
  return () => {
    isOver = true;
    server.kill('SIGTERM');
  };
}
