/**
 * The house's layers: cli → agent | collector → otlp-client → common. scripts/lint.sh also asserts how many modules were
 * seen, because a TypeScript that dependency-cruiser can't load makes it see none, and pass.
 */
const BUILTIN_IO =
  '^(node:)?(fs|fs/promises|net|tls|dgram|dns|http|http2|https|child_process|cluster|worker_threads|os|readline|repl|tty|inspector)$';
const TEST = '\\.test\\.ts$';

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'no-cycle',
      comment: 'Types count: what closes by a type can be neither read nor moved alone.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'not-resolvable',
      comment: '#otlp is built: run make first.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-orphan',
      comment: 'A module that nothing reaches is dead, or its test is missing.',
      severity: 'error',
      from: { orphan: true, pathNot: ['\\.d\\.ts$', TEST, '^cli/main\\.ts$'] },
      to: {},
    },
    {
      name: 'agent-not-collector',
      severity: 'error',
      from: { path: '^agent/' },
      to: { path: '^(collector|cli)/' },
    },
    {
      name: 'collector-not-agent',
      severity: 'error',
      from: { path: '^collector/' },
      to: { path: '^(agent|cli)/' },
    },
    {
      name: 'common-at-the-bottom',
      severity: 'error',
      from: { path: '^common/', pathNot: '\\.test\\.ts$' },
      to: { path: '^(agent|collector|otlp-client|cli|addon|test|scripts)/' },
    },
    {
      name: 'otlp-client-above-common',
      comment: 'What sends OTLP, for both halves: it knows neither of them.',
      severity: 'error',
      from: { path: '^otlp-client/', pathNot: TEST },
      to: { path: '^(agent|collector|cli|addon|test|scripts)/' },
    },
    {
      name: 'common-no-io',
      comment: 'Parsers and formats take bytes and give values; whoever has the file reads it.',
      severity: 'error',
      from: { path: '^common/', pathNot: TEST },
      to: { path: BUILTIN_IO, dependencyTypes: ['core'] },
    },
    {
      name: 'page-apart',
      comment: 'The page is bundled for browsers: it sees its own folder and common, nothing of Node.',
      severity: 'error',
      from: { path: '^collector/web/', pathNot: TEST },
      to: { path: '^(agent|cli|otlp-client|collector/(?!web/))', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'page-no-node',
      severity: 'error',
      from: { path: '^collector/web/', pathNot: TEST },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'interpreter-alone',
      comment:
        'A runtime plug-in knows common, the contract, the reader of memory, the hash of cookies, what Lua and LuaJIT share, what follows code of arm64, and its own folder.',
      severity: 'error',
      from: { path: '^agent/interpreters/([^/]+)/', pathNot: TEST },
      to: {
        path: '^(agent|collector|cli)/',
        pathNot: [
          '^agent/interpreters/$1/',
          '^agent/interpreters/(contract|cookie|runtime-memory|lua-functions|arm64-code)\\.ts$',
          // constants that are generated from the C headers
          '^agent/records/records\\.gen\\.ts$',
        ],
      },
    },
    {
      name: 'records-leaf',
      comment: 'What kernel and user space share, which everybody may know.',
      severity: 'error',
      from: { path: '^agent/records/', pathNot: TEST },
      to: { path: '^(agent/(?!records/)|collector|cli)' },
    },
    {
      name: 'tracer-knows-no-runtime',
      comment: 'It is told which there are, and knows their contract.',
      severity: 'error',
      from: { path: '^agent/tracer/', pathNot: TEST },
      to: { path: '^agent/(runtimes|interpreters/[^/]+)/' },
    },
    {
      name: 'page-at-the-top',
      comment: 'What the page shares with others has a folder in common: flame/.',
      severity: 'error',
      from: { pathNot: ['^collector/web/', TEST] },
      to: { path: '^collector/web/' },
    },
    {
      name: 'no-test-in-product',
      severity: 'error',
      from: { path: '^(agent|collector|common|otlp-client|cli)/', pathNot: TEST },
      to: { path: `^test/|${TEST}` },
    },
    {
      name: 'no-dev-dependency-in-product',
      severity: 'error',
      from: { path: '^(agent|common|otlp-client|cli|collector/(?!web/))', pathNot: TEST },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], dependencyTypesNot: ['type-only'] },
    },
  ],
  options: {
    doNotFollow: { path: '^(node_modules|build)/' },
    exclude: { path: '^(dist|node_modules/\\.vite)/' },
    tsPreCompilationDeps: 'specify',
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'types', 'default'],
      extensions: ['.ts', '.tsx', '.js', '.mjs', '.cjs', '.json', '.d.ts'],
    },
  },
};
