/**
 * Which frames are the program's own, as far as a name, a path and a kind can tell: the rules of the page's and the
 * report's "my code only". Each runtime has its own; what none of them knows is the program's.
 */

import { FRAME_TYPES, isFrameType, KNOWN_FRAME_TYPES, type KnownFrameType } from '../model/frame-types.ts';

export interface CodeFrame {
  name: string;
  /** Source file, '' if unknown. */
  file: string;
  /** Path or name of the binary, '' if unknown. */
  mapping: string;
  /** OpenTelemetry's frame type, or what a view has in its place. */
  kind: string;
}

interface Rule {
  /** In words, after "without". */
  what: string;
  /** Those of the runtime's own frames first. */
  kinds: readonly [KnownFrameType, ...string[]];
  /** Of a frame of these kinds. */
  isLibrary(frame: CodeFrame): boolean;
}

/** Where distributions put what nobody wrote for this program. */
const SYSTEM_PATH =
  /^(?:\/(?:usr\/)?(?:lib(?:32|64|x32|exec)?|s?bin)\/|\/usr\/share\/|\/nix\/store\/|\/gnu\/store\/|\[)/;
/** Where package managers of languages put what they fetch. */
const PACKAGES = /\/(?:node_modules|site-packages|dist-packages|gems)\//;
/** A library by its name alone, as some agents send it. */
const BARE_LIBRARY = /^[^/]+\.so(?:\.|$)/;
const SYSTEM_SOURCE = /^(?:\/usr\/(?:include|lib|src)\/|\/rustc\/)|\/\.?cargo\/(?:registry|git)\//;

/** Between the kernel and main, where a program holds them itself: glibc's, musl's and the dynamic linker's. */
const START_UP =
  /^(?:_start|_start_c|_dl_start(?:_user)?|_init|_fini|(?:__)?libc_start_\w+|__libc_csu_init|generic_start_main|call_init|start_thread|(?:__)?clone3?)(?:[@.].*)?$/;

/** Go's code is native to an agent: its source files tell it, with or without the path that -trimpath leaves out. */
const GO_SOURCE =
  /\.go$|(?:^|\/go[^/]*\/src\/)(?:runtime|internal|syscall|sync|reflect|math|crypto|hash)\/.*\.s$/;
/** The first part of the standard library's import paths: those of others begin with a domain. */
const GO_STANDARD =
  'archive|bufio|bytes|cmp|compress|container|context|crypto|database|debug|embed|encoding|errors|expvar|flag|fmt|go|hash|html|image|index|internal|io|iter|log|maps|math|mime|net|os|path|plugin|reflect|regexp|runtime|slices|sort|strconv|strings|structs|sync|syscall|testing|text|time|type|unicode|unique|unsafe|vendor|weak';
/** `plugin/unnamed-…` is a plugin's own main package. */
const GO_LIBRARY_NAME = new RegExp(`^(?!plugin/)(?:${GO_STANDARD})[./:]`);
const GO_LIBRARY_FILE = new RegExp(
  `/pkg/mod/|@v\\d|/vendor/|^/usr/(?:local|lib)/go|^(?:${GO_STANDARD})/.*\\.(?:go|s)$|/go[^/]*/src/(?:${GO_STANDARD})/`,
);

/** Assembly of the standard library has names without a package, such as `memeqbody`. */
const isGoLibrary = ({ name, file }: CodeFrame): boolean =>
  GO_LIBRARY_NAME.test(name) || GO_LIBRARY_FILE.test(file) || (file === '' && /^\w+$/.test(name));

const byFile =
  (pattern: RegExp) =>
  ({ file }: CodeFrame): boolean =>
    pattern.test(file);
const byName =
  (pattern: RegExp) =>
  ({ name }: CodeFrame): boolean =>
    pattern.test(name);

const RULES = {
  node: {
    what: 'node: modules and node_modules',
    kinds: ['v8js'],
    isLibrary: byFile(/^(?:node|internal|ext|deno):|^internal\/|\/node_modules\//),
  },
  python: {
    what: 'the standard library and site-packages',
    kinds: ['cpython'],
    isLibrary: ({ name, file }) =>
      name.startsWith('<frozen') ||
      /^<frozen|\/lib(?:64)?\/python[\d.]+t?\/|\/(?:site|dist)-packages\//.test(file),
  },
  jvm: {
    what: 'the JDK and the libraries of its languages',
    kinds: ['jvm'],
    isLibrary: byName(/^(?:java|javax|jdk|sun|com[./]sun|kotlin|kotlinx|scala|groovy|clojure)[./]/),
  },
  go: {
    what: 'the standard library, the runtime and modules',
    kinds: ['go', 'native'],
    isLibrary: (frame) => (frame.kind === 'go' || GO_SOURCE.test(frame.file)) && isGoLibrary(frame),
  },
  ruby: {
    what: 'what is written in C, the standard library and gems',
    kinds: ['ruby'],
    isLibrary: byFile(/^$|^<internal:|\/lib\/ruby\/|\/gems\//),
  },
  php: {
    what: 'what is written in C, and vendor directories',
    kinds: ['php', 'phpjit'],
    isLibrary: byFile(/^$|^phar:|\/vendor\/|^\/usr\/share\//),
  },
  perl: {
    what: 'the modules of perl and of CPAN',
    kinds: ['perl'],
    isLibrary: byFile(/\/perl(?:5|-base)?\/|\/site_perl\//),
  },
  dotnet: {
    what: 'System, Microsoft and NuGet packages',
    kinds: ['dotnet'],
    isLibrary: ({ name, mapping, file }) =>
      /^(?:System|Microsoft|Internal|Interop)[./]/.test(name) ||
      /(?:^|\/)(?:System|Microsoft)\.[^/]*\.dll$/.test(mapping) ||
      /\/\.nuget\/packages\//.test(`${mapping}\n${file}`),
  },
  beam: {
    what: "OTP, Elixir's own modules and dependencies",
    kinds: ['beam'],
    isLibrary: ({ name, file }) =>
      /^(?:Elixir\.|anonymous fn\/\d+ in )?(?:Enum|Stream|Task|GenServer|Agent|Kernel|String|Map|List|Keyword|Process|Registry|Supervisor|Code|Module)\b/.test(
        name,
      ) ||
      /^(?:erlang|lists|gen|gen_server|gen_statem|gen_event|proc_lib|sys|supervisor|maps|io|io_lib|file|code|code_server|ets|timer|string|binary|unicode|erl_\w+|init|prim_\w+|inet\w*|logger\w*)[:.]/.test(
        name,
      ) ||
      /\/(?:erlang|elixir)\/|\/deps\//.test(file),
  },
  lua: {
    what: 'modules in share/lua and what is built in',
    kinds: ['luajit', 'lua'],
    isLibrary: byFile(/^$|\/share\/lua(?:jit[-\d.]*)?\/|\/luarocks\/|\/lualib\//),
  },
  native: {
    what: "the kernel, system libraries, installed programs and C's start-up code",
    kinds: ['native', 'kernel', 'unknown', '', 'abort-marker'],
    isLibrary: ({ kind, name, file, mapping }) =>
      kind === 'kernel' ||
      kind === 'abort-marker' ||
      START_UP.test(name) ||
      SYSTEM_PATH.test(mapping) ||
      PACKAGES.test(mapping) ||
      BARE_LIBRARY.test(mapping) ||
      SYSTEM_SOURCE.test(file) ||
      isRuntime(mapping),
  },
} as const satisfies Record<string, Rule>;

export type Runtime = keyof typeof RULES;
export const RUNTIMES = Object.keys(RULES) as readonly Runtime[];

/** What is taken out for a runtime, in words after "without". */
export const libraryOf = (runtime: Runtime): string => RULES[runtime].what;

/** For people, as its frames are called. */
export const runtimeLabel = (runtime: Runtime): string => FRAME_TYPES[RULES[runtime].kinds[0]].label;

const fileName = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

const rules: readonly (readonly [Runtime, Rule])[] = RUNTIMES.map((runtime) => [runtime, RULES[runtime]]);

/** The runtime's own programs and libraries. */
const isBinaryOf = (kinds: readonly string[], name: string): boolean =>
  kinds.some((kind) => isFrameType(kind) && FRAME_TYPES[kind].binaries?.test(name) === true);

const isRuntime = (mapping: string): boolean => runtimeOf(mapping) !== undefined;

/** The type of the frames that a program or a library is the runtime of. */
export const runtimeOf = (mapping: string): KnownFrameType | undefined =>
  KNOWN_FRAME_TYPES.find((type) => isBinaryOf([type], fileName(mapping)));

/** What stands between the start of a thread and its function: libc's, and what is generated from templates. */
export const isStartOfThread = ({ name, file, mapping }: CodeFrame): boolean =>
  START_UP.test(name) ||
  SYSTEM_SOURCE.test(file) ||
  /^(?:std|core)::/.test(name) ||
  /^lib(?:c|pthread|stdc\+\+|c\+\+)[.-]/.test(fileName(mapping));

const isNative = (kind: string): boolean => kind === 'native' || kind === 'unknown' || kind === '';

/** Whether a frame stays where the libraries of these runtimes are taken out. */
export function isMine(frame: CodeFrame, runtimes: ReadonlySet<Runtime>): boolean {
  return !rules.some(
    ([runtime, { kinds, isLibrary }]) =>
      runtimes.has(runtime) &&
      ((kinds.includes(frame.kind) && isLibrary(frame)) ||
        (isNative(frame.kind) && isBinaryOf(kinds, fileName(frame.mapping)))),
  );
}

export const ALL_RUNTIMES: ReadonlySet<Runtime> = new Set(RUNTIMES);

/** `mine` for every runtime, or some of their names. Undefined: not all of them are such names. */
export function readRuntimes(values: readonly string[]): ReadonlySet<Runtime> | undefined {
  if (values.join() === 'mine') return ALL_RUNTIMES;
  const known = RUNTIMES.filter((runtime) => values.includes(runtime));
  return values.length > 0 && known.length === new Set(values).size ? new Set(known) : undefined;
}
