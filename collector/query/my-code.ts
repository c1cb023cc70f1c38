/** Which frames are the program's own, as far as a name, a path and a kind can tell. */
import type { Frame } from '../store/store.ts';

/** Where distributions put what nobody wrote for this program. */
const SYSTEM_PATH = /^(?:\/(?:usr\/)?lib(?:32|64|exec)?\/|\/usr\/share\/|\/nix\/store\/|\[)/;
/** Programs that run other programs' code, and libraries that come along with them. */
const RUNTIME =
  /^(?:node|nodejs|python[\d.]*|pypy[\d.]*|ruby[\d.]*|perl[\d.]*|php(?:-fpm|-cgi)?[\d.]*|java|dotnet|beam\.smp|luajit|lib(?:python|ruby|perl|jvm|coreclr|node|c|m|pthread|stdc\+\+|gcc_s)\b.*|ld-.*)$/;
const PYTHON_LIBRARY = /(?:^<frozen|\/lib\/python[\d.]+\/|\/(?:site|dist)-packages\/)/;
const JAVASCRIPT_LIBRARY = /^node:|\/node_modules\//;
const JVM_LIBRARY = /^(?:java|javax|jdk|sun|com\.sun|kotlin|scala|groovy)[./]/;
/** Go's standard library, by the first part of its import paths. */
const GO_LIBRARY =
  /^(?:archive|bufio|bytes|cmp|compress|container|context|crypto|database|debug|embed|encoding|errors|expvar|flag|fmt|go|hash|html|image|index|internal|io|iter|log|maps|math|mime|net|os|path|plugin|reflect|regexp|runtime|slices|sort|strconv|strings|structs|sync|syscall|testing|text|time|type|unicode|unique|unsafe|vendor|weak)[./:]/;

export function isMine({ name, file, mapping, kind }: Frame): boolean {
  switch (kind) {
    case 'kernel':
    case 'abort-marker':
      return false;
    case 'native':
    case 'unknown':
      return !SYSTEM_PATH.test(mapping) && !RUNTIME.test(mapping.slice(mapping.lastIndexOf('/') + 1));
    case 'cpython':
      return !PYTHON_LIBRARY.test(file) && !name.startsWith('<frozen');
    case 'v8js':
      return !JAVASCRIPT_LIBRARY.test(file);
    case 'jvm':
      return !JVM_LIBRARY.test(name);
    case 'go':
      return !GO_LIBRARY.test(name);
    default:
      return !SYSTEM_PATH.test(file);
  }
}
