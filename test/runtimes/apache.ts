/** Apache in a folder with its packages, asked again and again; its workers are forked. */
import { spawn } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Recording, type Stack, total } from '../support/recording.ts';
import { inRoot } from './package-roots.ts';

/** A recording of it from the first stack on that is as wanted, until there are so many; `stop` ends both. */
export async function recordApache(
  place: { root: string; web: string; url: string },
  wanted: { isCounted: (stack: Stack) => boolean; isWhole: (stack: Stack) => boolean; samples: number },
): Promise<{ recording: Recording; stop: () => Promise<void> }> {
  const recording = await Recording.start({ samplesPerSecond: 199 });
  const end = startApache(place.root, place.web, place.url);
  const stop = async (): Promise<void> => {
    end();
    await recording.stop();
  };
  try {
    await recording.until((stacks) =>
      stacks.some((stack) => wanted.isCounted(stack) && wanted.isWhole(stack)),
    );
    recording.clear();
    await recording.until((stacks) => total(stacks.filter(wanted.isCounted)) >= wanted.samples);
  } catch (error) {
    await stop();
    throw error;
  }
  return { recording, stop };
}

/** `web`: a folder with httpd.conf, which finds itself as /tmp/web. The answer ends the server. */
function startApache(root: string, web: string, url: string): () => void {
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
