import { AddonError, loadNative } from '../../agent/base/native.ts';
import { type Check, checkProbes } from '../../agent/host/host-checks.ts';
import { readHostFacts } from '../../agent/host/host-facts.ts';
import { RUNTIMES } from '../../agent/runtimes/runtimes.gen.ts';
import { THREAD_CONTEXTS } from '../../agent/tracer/sampler-part.ts';
import { Tracer } from '../../agent/tracer/tracer.ts';

/** The host allows it by all that its files say: what is left is what a container engine filters. */
const FIX = 'run it as root, in a container with bpf and perf_event_open allowed (docker: --privileged)';
const REPORT = 'native frames are not affected; please report this with the lines above';

const fatalCheck = (error: Error): Check =>
  error instanceof AddonError
    ? { name: 'addon', status: 'fatal', message: error.problem, fix: error.fix }
    : { name: 'sampler', status: 'fatal', message: error.message, fix: FIX };

/** The doctor's last checks: loads the real programs and opens an event on each CPU, then lets go of all of it. */
export async function probeSampler(): Promise<Check[]> {
  const name = 'sampler';
  const refused: string[] = [];
  try {
    const tracer = new Tracer(
      {
        samplesPerSecond: 1,
        sendIdleFrames: false,
        maxUserFrames: 1023,
        maxTableBytes: 4 << 20,
        runtimes: RUNTIMES,
      },
      { onRecord: () => {} },
      (message) => void refused.push(message),
    );
    try {
      await tracer.start();
      const cpus = tracer.events.cpus.length;
      // an agent does this when it first meets the runtime
      for (const part of [...RUNTIMES, THREAD_CONTEXTS]) await tracer.samplers.add(part);
      return [
        { name, status: 'ok', message: `the BPF programs load, and ${cpus} CPUs can be sampled` },
        ...refused.map((message): Check => ({ name, status: 'degraded', message, fix: REPORT })),
        checkProbes(readHostFacts(), loadNative().hasUprobeMulti()),
      ];
    } finally {
      await tracer.stopSampling();
      await tracer.close();
    }
  } catch (error) {
    return [fatalCheck(error as Error)];
  }
}
