import type { EventSpec } from './events/event-spec.ts';
import type { FirstSamplesOptions } from './first-samples.ts';
import type { IntervalOptions } from './intervals.ts';
import type { SamplingOptions } from './sampling.ts';
import type { DebuginfodOptions } from './symbolizer/debuginfod/debuginfod.ts';
import type { SymbolDetail } from './symbolizer/worker/messages.ts';
import type { OffCpuOptions } from './tracer/off-cpu.ts';

export interface ControllerOptions extends SamplingOptions, IntervalOptions, FirstSamplesOptions {
  samplesPerSecond: number;
  symbols: SymbolDetail;
  /** Directory where names of native code are kept for later runs. */
  symbolCache?: string | undefined;
  /** Servers to fetch debug information from; none unless a person asks for it. */
  debuginfod?: DebuginfodOptions;
  sendIdleFrames: boolean;
  maxUserFrames: number;
  maxTableBytes: number;
  /** Limit for the process and its BPF maps, bytes. */
  maxMemoryBytes: number;
  /** CPU time that the agent may take in the long run, as a share of one core: samples are left out beyond it. Undefined: any. */
  maxCpu?: number | undefined;
  /** Read labels that programs give their samples; unless false. */
  labels?: boolean;
  /** Tell the goroutine of each sample in Go. */
  goroutineIds?: boolean;
  /** Sample where threads wait; undefined: CPU time alone. */
  offCpu?: OffCpuOptions | undefined;
  /** What is sampled, and how many stacks of each event a CPU and second; undefined: CPU time. */
  events?: { specs: readonly EventSpec[]; budget: number } | undefined;
  /** Show sources in place of the scripts that were made from them. */
  sourceMaps: boolean;
  /** Measure how long the main loop is kept from its work. */
  watchLoop?: boolean;
}
