import type { Command } from 'commander';
import type { Controller } from '../../agent/controller.ts';
import { parseEvent } from '../../agent/events/event-spec.ts';
import { typeOf } from '../../agent/events/event-types.ts';
import { AGENT_SETTINGS, parseAgentOptions } from '../../agent/settings/options.ts';
import { mergeProfiles } from '../../common/profile/model/merge.ts';
import { emptyProfile, type Profile } from '../../common/profile/model/profile.ts';
import { valueTypeName } from '../../common/profile/model/profile-type.ts';
import { withShortNames } from '../../common/profile/text/short-names.ts';
import { BufferedLog } from '../output/buffered-log.ts';
import { initialState, onKey } from '../output/top-state.ts';
import { renderTop } from '../output/top-view.ts';
import { addExamples } from '../program/examples.ts';
import { RECORD_FREQUENCY, RECORD_FREQUENCY_HELP } from '../program/frequency.ts';
import { makeLoggerTo, makePlainLogger } from '../program/logger.ts';
import { addSetting } from '../program/settings.ts';
import {
  type Chosen,
  collectPid,
  filesOfChosen,
  PID_HELP,
  requireChosen,
  requireOneChoice,
} from '../start/chosen-processes.ts';
import { controllerOptions, startController, untilSignal } from '../start/start-agent.ts';
import { SHORT_NAMES } from './report.ts';

/** Seconds that are shown together, one profile each. */
const WINDOW = 5;
/** Alternate screen, cursor hidden, wide characters cut and not wrapped; and back. The main screen is as it was. */
const ENTER = '\x1b[?1049h\x1b[?25l\x1b[?7l';
const LEAVE = '\x1b[?7h\x1b[?25h\x1b[?1049l';
/** What was pasted or typed fast arrives as one; an escape sequence is one key. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: keys are control characters
const KEYS = /\x1b[[O][0-9;]*[A-Za-z~]|[\s\S]/gu;
const SELECTED = '\x1b[7m';
const NORMAL = '\x1b[0m';

export function registerTop(program: Command): void {
  const command = program
    .command('top')
    .description('show live in the terminal which functions and processes use the CPUs')
    .option('-F, --frequency <HZ>', RECORD_FREQUENCY_HELP, RECORD_FREQUENCY)
    .option('-p, --pid <PID>', PID_HELP, collectPid)
    .option('--short-names', SHORT_NAMES)
    .action(top);
  for (const setting of AGENT_SETTINGS)
    if (['event', 'cgroup', 'exclude-cgroup'].includes(setting.flag)) addSetting(command, setting);
  addExamples(command, [
    ['everyframe top', 'the whole machine; ? explains the keys'],
    ['everyframe top -p 1234', 'one process and its children'],
    ['everyframe top --event page-faults', 'who touches new memory'],
  ]);
}

interface TopFlags extends Chosen {
  frequency: string;
  shortNames?: boolean;
  event?: string[];
}

async function top(flags: TopFlags): Promise<void> {
  const { stdin, stdout } = process;
  if (!stdin.isTTY || !stdout.isTTY)
    throw new Error(
      'top needs a terminal: use "everyframe record -o FILE" and "everyframe report FILE" elsewhere',
    );
  requireChosen(flags);
  requireOneChoice(flags);
  const options = parseAgentOptions({
    ...{ samplesPerSecond: flags.frequency, reporterInterval: '1s', reporterJitter: '0', maxCpu: '0' },
    event: flags.event,
    cgroup: flags.cgroup,
    excludeCgroup: flags.excludeCgroup,
  });
  const [event = parseEvent('cpu-clock'), ...others] = options.event;
  if (others.length > 0) throw new Error('--event was given more than once: top shows one');
  const held = new BufferedLog((text) => void process.stderr.write(text));
  const screen = new Screen(held, valueTypeName(typeOf(event).sampleType));
  // what goes to a file can't garble the screen
  const log = process.stderr.isTTY ? makeLoggerTo('top', (line) => screen.log(line)) : makePlainLogger('top');
  const receiver = flags.shortNames
    ? { push: (profile: Profile) => screen.push(withShortNames(profile)) }
    : screen;
  const controller: Controller = await startController(
    {
      ...controllerOptions(options, log),
      ...(flags.pid && { targets: flags.pid }),
      expectedFiles: filesOfChosen(flags),
    },
    receiver,
    log,
  );
  try {
    screen.open();
    await Promise.race([screen.ended, untilSignal()]);
  } finally {
    screen.close();
    await controller.stop();
  }
}

/** The terminal, from `open` to `close`; whatever happens between them, it is left as it was found. */
class Screen {
  readonly ended: Promise<void>;
  #end: () => void = () => {};
  #state = initialState();
  #window: Profile[] = [];
  #shown: Profile = emptyProfile();
  #isOpen = false;
  readonly #held: BufferedLog;
  readonly #type: string;

  /** `type`: profiles of it are shown. */
  constructor(held: BufferedLog, type: string) {
    this.#held = held;
    this.#type = type;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  push(profile: Profile): void {
    if (valueTypeName(profile.type.sampleType) !== this.#type) return;
    this.#window = [...this.#window, profile].slice(-WINDOW);
    if (!this.#state.paused) this.#shown = mergeProfiles(this.#window)[0]!;
    this.#draw();
  }

  /** A line of the log: as the last line of the screen until a key is pressed, and for good when it has ended. */
  log(line: string): void {
    this.#held.add(line);
    this.#draw();
  }

  open(): void {
    this.#isOpen = true;
    this.#held.hold();
    process.stdout.write(ENTER);
    process.stdin.setRawMode(true);
    process.stdin.setEncoding('utf8');
    process.stdin.on('data', this.#onInput);
    process.stdout.on('resize', this.#draw);
    process.on('exit', this.close);
    this.#draw();
  }

  readonly close = (): void => {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    process.stdin.off('data', this.#onInput);
    process.stdin.setRawMode(false);
    process.stdin.pause();
    process.stdout.off('resize', this.#draw);
    process.stdout.write(LEAVE);
    this.#held.release();
  };

  readonly #onInput = (input: string): void => {
    this.#held.markRead();
    for (const key of input.match(KEYS) ?? []) {
      // terminals in application mode send ESC O for ESC [
      const next = onKey(this.#state, key.replace('\x1bO', '\x1b['), this.#render());
      if (next === undefined) {
        this.#end();
        return;
      }
      this.#state = next;
    }
    this.#draw();
  };

  readonly #draw = (): void => {
    if (!this.#isOpen) return;
    const { lines, selectedLine } = this.#render();
    const shown = lines.map((line, i) => (i === selectedLine ? SELECTED + line + NORMAL : line));
    // each line is overwritten and cleared to its end: no flicker over ssh
    process.stdout.write(`\x1b[H${shown.map((line) => `${line}\x1b[K`).join('\r\n')}\x1b[J`);
  };

  #render() {
    const { columns = 80, rows = 24 } = process.stdout;
    return renderTop(this.#shown, this.#state, columns, rows, this.#held.unread);
  }
}
