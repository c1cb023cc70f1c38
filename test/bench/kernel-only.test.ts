import { expect, test } from 'vitest';
import type { FrameType } from '../../common/profile/model/profile.ts';
import { ProfileBuilder } from '../../common/profile/model/profile-builder.ts';
import { countKernelOnly } from './kernel-only.ts';

/** Each stack, leaf first, was seen at 10, 20 and 30. */
function profileOf(...stacks: string[]): ProfileBuilder['profile'] {
  const builder = new ProfileBuilder();
  const owner = { process: 'p', pid: 1, tid: 1, thread: 'p' };
  for (const text of stacks) {
    const frames = text.split(' ').map((each) => {
      const [frameType, name] = each.split(':') as [FrameType, string];
      return builder.location({ name, frameType });
    });
    builder.add(builder.stack(frames), owner, 3, [10n, 20n, 30n]);
  }
  return builder.profile;
}

test('counts stacks that end where the kernel was entered, in a span', () => {
  const profile = profileOf(
    'kernel:exit_mmap kernel:entry_SYSCALL_64_after_hwframe',
    'kernel:do_syscall_64 native:write native:_start',
    'kernel:worker_thread kernel:ret_from_fork_asm',
    'kernel:do_syscall_64 abort-marker:cut',
  );
  expect(countKernelOnly(profile, { from: 10n, to: 30n })).toEqual({ samples: 8, kernelOnly: 2 });
  expect(countKernelOnly(profile, { from: 31n, to: 40n })).toEqual({ samples: 0, kernelOnly: 0 });
});
