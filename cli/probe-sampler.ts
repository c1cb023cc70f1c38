import type { Check } from '../agent/tracer/host-checks.ts';
import { Tracer } from '../agent/tracer/tracer.ts';

/** The host allows it by all that its files say: what is left is what a container engine filters. */
const FIX = 'run it as root, in a container with bpf and perf_event_open allowed (docker: --privileged)';

/** The doctor's last check: loads the real programs and opens an event on each CPU, then lets go of all of it. */
export async function probeSampler(): Promise<Check[]> {
  const name = 'sampler';
  try {
    const tracer = new Tracer(
      { samplesPerSecond: 1, sendIdleFrames: false, maxUserFrames: 1023, maxTableBytes: 4 << 20 },
      () => {},
      () => {},
    );
    try {
      await tracer.start();
      const cpus = tracer.events.cpus.length;
      return [{ name, status: 'ok', message: `the BPF programs load, and ${cpus} CPUs can be sampled` }];
    } finally {
      await tracer.stopSampling();
      tracer.close();
    }
  } catch (error) {
    return [{ name, status: 'fatal', message: (error as Error).message, fix: FIX }];
  }
}
