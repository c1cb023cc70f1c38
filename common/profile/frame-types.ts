/**
 * Types of frames: one table of what the formats, the page and "my code only" know of each. The names are those of
 * OpenTelemetry's attribute `profile.frame.type`.
 */

interface FrameTypeRow {
  /** For people. */
  label: string;
  /** Degrees in OKLCH. Neighbours in a mixed stack (kernel, native, one runtime) are far apart in hue. */
  hue: number;
  /** Of colour; undefined: as most have. */
  chroma?: number;
  /** Category of the Firefox Profiler, which a reader knows the type by, and the program's own name of a colour. */
  category: string;
  colour: string;
  /** As the Firefox Profiler understands it. */
  isJS?: boolean;
  /** The runtime's own programs and libraries, by their file names. */
  binaries?: RegExp;
}

export const FRAME_TYPES = {
  'abort-marker': {
    label: 'incomplete',
    hue: 350,
    chroma: 0.03,
    category: 'Incomplete',
    colour: 'darkgrey',
  },
  // native code is most of most pictures: the calmest colour is its
  native: {
    label: 'native',
    hue: 250,
    chroma: 0.058,
    category: 'Native',
    colour: 'blue',
  },
  kernel: { label: 'kernel', hue: 35, category: 'Kernel', colour: 'orange' },
  go: { label: 'Go', hue: 200, category: 'Go', colour: 'lightblue' },
  cpython: {
    label: 'Python',
    hue: 95,
    category: 'Python',
    colour: 'yellow',
    binaries: /^(?:python[\d.]*t?|pypy[\d.]*)$|^lib(?:python|pypy)/,
  },
  v8js: {
    label: 'JavaScript',
    hue: 140,
    category: 'JavaScript (V8)',
    colour: 'green',
    isJS: true,
    binaries: /^(?:node|nodejs|deno|bun)$|^libnode\b/,
  },
  jvm: {
    label: 'JVM',
    hue: 65,
    category: 'JVM',
    colour: 'brown',
    binaries: /^java$|^lib(?:jvm|java|nio|net|zip|jimage)\.so/,
  },
  ruby: { label: 'Ruby', hue: 12, category: 'Ruby', colour: 'red', binaries: /^ruby[\d.]*$|^libruby/ },
  perl: { label: 'Perl', hue: 300, category: 'Perl', colour: 'purple', binaries: /^perl[\d.]*$|^libperl/ },
  php: {
    label: 'PHP',
    hue: 280,
    category: 'PHP',
    colour: 'magenta',
    binaries: /^php(?:-fpm|-cgi)?[\d.]*$|^libphp/,
  },
  phpjit: { label: 'PHP (JIT)', hue: 285, category: 'PHP (JIT)', colour: 'magenta' },
  dotnet: {
    label: '.NET',
    hue: 320,
    category: '.NET',
    colour: 'purple',
    binaries: /^dotnet$|^lib(?:coreclr|clrjit|hostfxr|hostpolicy|System\.)/,
  },
  beam: {
    label: 'BEAM',
    hue: 170,
    category: 'BEAM',
    colour: 'lightred',
    binaries: /^beam(?:\.smp)?$|^erlexec$/,
  },
  luajit: {
    label: 'LuaJIT',
    hue: 220,
    category: 'LuaJIT',
    colour: 'purple',
    binaries: /^(?:luajit|lua)[-\d.]*$|^libluajit/,
  },
} as const satisfies Record<string, FrameTypeRow>;

export type KnownFrameType = keyof typeof FRAME_TYPES;
export const KNOWN_FRAME_TYPES = Object.keys(FRAME_TYPES) as readonly KnownFrameType[];

export const isFrameType = (text: string): text is KnownFrameType => Object.hasOwn(FRAME_TYPES, text);

/** Colour of the type, as {@link FrameTypeRow} has it. */
export const styleOf = (type: KnownFrameType): FrameTypeRow => FRAME_TYPES[type];
