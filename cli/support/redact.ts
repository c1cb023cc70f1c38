/** Takes out of a text what lets somebody in: for what a person sends to others. */

const MARK = '(secret)';
/** Shorter ones would take letters out of words. */
const MIN_SECRET_CHARS = 6;

const PATTERNS: readonly [RegExp, string][] = [
  // `authorization: Bearer …`, `"authorization":"Basic …"`
  [/\b((?:Bearer|Basic)\s+)[\w.~+/=-]{4,}/gi, `$1${MARK}`],
  // http://user:password@host
  [/(\/\/[^\s/:@]+:)[^\s/@]+(@)/g, `$1${MARK}$2`],
  // token=…, api-key: …, "password": "…", as settings and lines of logs have them
  [
    /((?:token|api[-_]?key|secret|passw(?:or)?d|authorization|cookie)["']?\s*[=:]\s*["']?)(?!Bearer|Basic|\(secret\))[^\s"',;]+/gi,
    `$1${MARK}`,
  ],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, MARK],
];

/** @param secrets values of settings that are never printed, whatever they look like */
export function redact(text: string, secrets: readonly string[]): string {
  let clean = text;
  for (const secret of secrets) if (secret.length >= MIN_SECRET_CHARS) clean = clean.replaceAll(secret, MARK);
  for (const [pattern, replacement] of PATTERNS) clean = clean.replace(pattern, replacement);
  return clean;
}
