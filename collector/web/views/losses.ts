/** What is known of a loss, a counter or a frame: at which stage, why, and what to do about it. */
import { CUT_MARKERS } from '../../../common/profile/model/cut-markers.ts';
import { type UnnamedReason, unnamedReasonOf } from '../../../common/profile/model/unnamed-markers.ts';

export type Stage = 'taken' | 'unwound' | 'named' | 'attributed' | 'exported' | 'stored' | 'forwarded';

export interface LossKind {
  stage: Stage;
  reason: string;
  advice: string;
}

const NOTHING = 'Nothing to do: it passes by itself.';
const REPORT = "Report it: the agent's log says more.";
const POINTERS =
  'Build the program with -fno-omit-frame-pointer, or keep its .eh_frame; "everyframe show stack-deltas FILE" shows what a file has.';
const LOWER_RATE = 'Give the agent more CPU time, or sample less often with --samples-per-second.';

/** Counted in files, not in samples. */
const hardToRead = (what: string): LossKind => ({
  stage: 'named',
  reason: `files, not samples, that ${what}`,
  advice: "The agent's log names them, and how long it leaves each alone; --max-memory gives readers more.",
});

/** By the agent's name of the counter. */
export const LOSSES: Readonly<Record<string, LossKind>> = {
  'bpf.samples_lost_ring': { stage: 'taken', reason: 'the ring buffer was full', advice: LOWER_RATE },
  'bpf.samples_shed': {
    stage: 'taken',
    reason:
      'the agent had used up its share of a CPU, so samples were left out by chance: shares stay right, totals are lower',
    advice: 'Raise --max-cpu, or sample less often with --samples-per-second.',
  },
  'bpf.traces_lost_ring': {
    stage: 'taken',
    reason: 'the ring buffer had no room for a new stack',
    advice: LOWER_RATE,
  },
  'bpf.scratch_missing': {
    stage: 'taken',
    reason: 'the kernel had no scratch memory for the CPU',
    advice: 'Report it: this should not happen.',
  },
  'traces.lostTraceMissing': {
    stage: 'taken',
    reason: 'the stack of a sample never arrived',
    advice:
      'The ring buffer was full, where it is named too; or the agent had forgotten the stack, as of a thread that waited for long.',
  },
  'traces.lostIntervalFull': {
    stage: 'taken',
    reason: 'too many different stacks in one interval',
    advice: 'Push more often with --reporter-interval, or sample less often.',
  },
  'traces.malformed': { stage: 'taken', reason: 'a record could not be read', advice: REPORT },
  'records.malformed': { stage: 'taken', reason: 'a record of an unknown kind', advice: REPORT },
  'records.failed': { stage: 'taken', reason: 'a record the agent failed at', advice: REPORT },
  'samples.failed': {
    stage: 'named',
    reason: 'an interval could not be made into a profile',
    advice: 'Report it with the line that the agent logged: it is an error of the agent.',
  },
  'reader.timedOut': {
    stage: 'named',
    reason:
      'memory of a process did not answer within 50 ms, as behind a FUSE or network mount that hangs: that process has no names of interpreted functions for a while',
    advice:
      'Look for mounts that hang (in "cat /proc/mounts", fuse and nfs). Nothing else waits, and names come back by themselves.',
  },
  'executables.failed.unanswered': {
    stage: 'unwound',
    reason: 'a program or library lies on a mount that does not answer within a second',
    advice: 'Look for mounts that hang (in "cat /proc/mounts", fuse and nfs). It is tried again by itself.',
  },
  'reader.refused': {
    stage: 'named',
    reason: 'a process was not read since its memory, or that of others of its user, had not answered before',
    advice: 'As above: the agent tries again, each time after twice the time, within ten minutes.',
  },
  'reader.overloaded': {
    stage: 'named',
    reason: '32 reads of memory hang in the kernel, so no other process is read until one of them ends',
    advice: 'End the file servers that hang: "fusermount3 -u MOUNTPOINT" or "umount -f MOUNTPOINT".',
  },
  'reader.filesTimedOut': {
    stage: 'named',
    reason:
      'a file of a process, or memory that its JIT writes, did not answer within a second, as behind a FUSE or network mount that hangs',
    advice:
      'Look for mounts that hang (in "cat /proc/mounts", fuse and nfs). Nothing else waits, and it is tried again by itself.',
  },
  'reader.filesRefused': {
    stage: 'named',
    reason: 'files of a process were not read since it, or others of its user, had not answered before',
    advice: 'As above: the agent tries again, each time after twice the time, within ten minutes.',
  },
  'reader.filesOverloaded': {
    stage: 'named',
    reason:
      'too many opens and reads of files hang in the kernel, so no other file is opened until one of them ends',
    advice: 'End the file servers that hang: "fusermount3 -u MOUNTPOINT" or "umount -f MOUNTPOINT".',
  },
  'reader.filesFailed': {
    stage: 'named',
    reason: 'the process that opens files for the agent could not be started, or ended',
    advice:
      'See whether build/everyframe-reader is there and may be run ("everyframe doctor"): "npm run setup" builds it.',
  },
  'reader.failed': {
    stage: 'named',
    reason: 'the process that reads memory for the agent could not be started, or ended',
    advice:
      'See whether build/everyframe-reader is there and may be run ("everyframe doctor"): "npm run setup" builds it.',
  },
  'bpf.user_regs_failed': {
    stage: 'unwound',
    reason: "the process's registers could not be read",
    advice: NOTHING,
  },
  'bpf.kernel_stack_failed': {
    stage: 'unwound',
    reason: 'the kernel gave no stack of its own',
    advice: NOTHING,
  },
  'bpf.kernel_stack_cut': {
    stage: 'unwound',
    reason: 'the kernel stack is deeper than 127 frames',
    advice: 'Not adjustable.',
  },
  'processRuntimes.approximate': {
    stage: 'named',
    reason:
      'Java processes whose lines and inlined callees are approximate: their JVM knows them at safepoints only',
    advice: 'Start them with -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints.',
  },
  'reporter.samplesDroppedOverflow': {
    stage: 'exported',
    reason: 'the queue was full while this collector was away or slow',
    advice: 'Raise --max-queue-bytes, or look at why the collector did not answer.',
  },
  'reporter.samplesRefused': {
    stage: 'exported',
    reason: 'the collector refused the request',
    advice: "The agent's log quotes the collector's words.",
  },
  'reporter.samplesTooLarge': {
    stage: 'exported',
    reason: 'a profile was larger than a request may be',
    advice: 'Push more often with --reporter-interval.',
  },
  'reporter.samplesRejectedPartial': {
    stage: 'exported',
    reason: 'the collector took only a part of the request',
    advice: 'See what is rejected at the stage "stored".',
  },
  'reporter.samplesDroppedStop': {
    stage: 'exported',
    reason: 'the agent was stopped before they were out',
    advice: NOTHING,
  },
  'workers.memory': hardToRead('took more memory to read than a file may take'),
  'workers.timedOut': hardToRead('took more time to read than a file may take'),
  'workers.crashed': hardToRead('ended the process that read them'),
  'workers.stalled': {
    ...hardToRead('were not read: what they lie on does not answer'),
    advice: "Look at the FUSE or network mount that the agent's log names.",
  },
};

type Cut = Omit<LossKind, 'stage'>;

const CUTS: Readonly<Record<keyof typeof CUT_MARKERS, Cut>> = {
  depth: {
    reason: 'the stack is deeper than the limit',
    advice: 'Raise --max-user-frames, up to 1023.',
  },
  noTable: {
    reason: 'the file has no unwind table and no frame pointers',
    advice: POINTERS,
  },
  pending: {
    reason: 'the table of a file that was new was still being made',
    advice: NOTHING,
  },
  noRule: {
    reason: "the file's unwind table says nothing about the address",
    advice: POINTERS,
  },
  anonymous: {
    reason: 'code that no file backs, without frame pointers',
    advice: 'Start the just-in-time compiler with frame pointers, such as java -XX:+PreserveFramePointer.',
  },
  stackRead: {
    reason: 'a page of the stack was not in memory',
    advice: 'Only swapped or new stacks lack pages: more memory helps.',
  },
  unmapped: {
    reason: 'a return address led outside of all code',
    advice: POINTERS,
  },
  register: {
    reason: 'the unwind rule needs a register that only the innermost frame has',
    advice: POINTERS,
  },
  noProgress: {
    reason: 'the stack pointer did not move up',
    advice: POINTERS,
  },
  compat: {
    reason: 'the process is a 32-bit one',
    advice: 'Not supported: only its kernel frames are shown.',
  },
  vmaRace: {
    reason: 'the memory map changed while it was read',
    advice: NOTHING,
  },
};

const CUT_OF_MARKER = new Map<string, Cut>(
  Object.entries(CUT_MARKERS).map(([name, marker]) => [marker, CUTS[name as keyof typeof CUT_MARKERS]]),
);

/** What the name of a frame that ends a cut stack stands for; other agents have names of their own. */
export const cutOf = (marker: string): Cut =>
  CUT_OF_MARKER.get(marker) ?? {
    reason: marker.replace(/^\[(cut: )?(.*)\]$/, '$2'),
    advice: 'The agent says no more than this.',
  };

/** By the name of the plug-in; other agents have names of their own. */
const RUNTIMES: Readonly<Record<string, string>> = {
  beam: 'Erlang',
  cpython: 'Python',
  dotnet: '.NET',
  hotspot: 'Java',
  lua: 'Lua',
  luajit: 'LuaJIT',
  perl: 'Perl',
  php: 'PHP',
  ruby: 'Ruby',
  v8: 'JavaScript',
};

const UNREAD: Readonly<Record<UnnamedReason, Cut>> = {
  unreadable: {
    reason: 'functions of processes that ended before their names were read',
    advice: 'Expected of short processes, more of them on a busy machine: give the agent more CPU time.',
  },
  replaced: {
    reason:
      'functions that ran once and were freed before their names were read, as while modules are loaded',
    advice:
      'Expected while programs start or make code at run time, more of it on a busy machine: give the agent more CPU time.',
  },
  malformed: {
    reason: 'functions whose name is not stored as this version of the runtime stores names',
    advice: "Report it with the runtime's version and how it was built: the agent may not know that build.",
  },
  costly: {
    reason:
      'functions of a process that makes so many that reading their names would cost the agent too much',
    advice:
      'The process may use 5 % of a CPU of the agent for its names: those that are missing come later, while it runs. Nothing to set.',
  },
  failed: { reason: 'functions at whose names the agent failed', advice: REPORT },
  unknownFile: {
    reason: 'functions of a runtime whose file left the agent’s memory',
    advice: 'Raise --max-memory.',
  },
};

/** What the frame in place of a runtime's function stands for. */
export function unreadOf(marker: string): Cut {
  const found = unnamedReasonOf(marker);
  if (!found) return { reason: marker, advice: 'The agent says no more than this.' };
  const { reason, advice } = UNREAD[found.reason];
  return { reason: `${RUNTIMES[found.runtime] ?? found.runtime} ${reason}`, advice };
}
