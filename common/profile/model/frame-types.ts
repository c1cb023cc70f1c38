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
  /** Its code is in the file that is mapped, which is its library. */
  isInFile?: boolean;
  /** Package or namespace of a function, where its name says it. */
  packageOf?(name: string): string;
  /** The runtime's own programs and libraries, by their file names. */
  binaries?: RegExp;
}

const ROWS = {
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
    isInFile: true,
  },
  kernel: {
    label: 'kernel',
    hue: 35,
    category: 'Kernel',
    colour: 'orange',
    isInFile: true,
    packageOf: () => 'kernel',
  },
  go: { label: 'Go', hue: 200, category: 'Go', colour: 'lightblue', packageOf: goPackage },
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
    packageOf: javaPackage,
    binaries: /^java$|^lib(?:jvm|jli|java|nio|net|zip|jimage)\.so/,
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
    isInFile: true,
    packageOf: (name) => name.split('.').slice(0, 2).join('.'),
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
    binaries: /^luajit[-\d.]*$|^libluajit/,
  },
  lua: {
    label: 'Lua',
    hue: 220,
    category: 'Lua',
    colour: 'purple',
    binaries: /^lua[-\d.]*$|^liblua\d/,
  },
} satisfies Record<string, FrameTypeRow>;

export type KnownFrameType = keyof typeof ROWS;
export const FRAME_TYPES: Readonly<Record<KnownFrameType, FrameTypeRow>> = ROWS;
export const KNOWN_FRAME_TYPES = Object.keys(FRAME_TYPES) as readonly KnownFrameType[];

export const isFrameType = (text: string): text is KnownFrameType => Object.hasOwn(FRAME_TYPES, text);

/** The import path: what is before the first dot behind the last slash. */
function goPackage(name: string): string {
  const slash = name.lastIndexOf('/', name.search(/[([]|$/));
  const dot = name.indexOf('.', slash + 1);
  return dot < 0 ? name : name.slice(0, dot);
}

/** Two parts tell whose it is: `java.util`, `com.example`. */
function javaPackage(name: string): string {
  const parts = name.split(/[(<$]/)[0]!.split(/[./]/);
  // the last two are class and method
  return parts.slice(0, Math.min(2, Math.max(1, parts.length - 2))).join('.');
}
