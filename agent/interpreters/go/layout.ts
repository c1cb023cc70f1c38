/**
 * Where the members of Go's structs are that labels are found by: runtime/runtime2.go of each release (g and m), told
 * by DWARF of programs that were built with it. m.curg, g.labels and g.goid.
 */
export interface GoLayout {
  curg: number;
  labels: number;
  goid: number;
  /** Labels are a map; else a slice. */
  isMap: boolean;
}

/** From that release of Go 1 on; the newest first. */
const LAYOUTS: readonly (readonly [minor: number, layout: GoLayout])[] = [
  [26, { curg: 184, labels: 352, goid: 152, isMap: false }],
  [25, { curg: 184, labels: 344, goid: 152, isMap: false }],
  [24, { curg: 192, labels: 352, goid: 160, isMap: false }],
  [23, { curg: 192, labels: 352, goid: 160, isMap: true }],
  [21, { curg: 192, labels: 344, goid: 152, isMap: true }],
  [17, { curg: 192, labels: 360, goid: 152, isMap: true }],
  [13, { curg: 192, labels: 344, goid: 152, isMap: true }],
];

/** `version`: `1.26.8`. A newer release than those is taken for the newest of them. */
export function layoutOf(version: string): GoLayout | undefined {
  const [major, minor] = version.split('.').map((part) => Number.parseInt(part, 10)) as [number, number];
  if (major !== 1) return undefined;
  return LAYOUTS.find(([first]) => minor >= first)?.[1];
}
