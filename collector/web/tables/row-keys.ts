/** How far a key moves among rows, rows; undefined for other keys. The way may lead outside. */
export function stepOf(key: string, pageRows: number, rows: number): number | undefined {
  switch (key) {
    case 'ArrowDown':
      return 1;
    case 'ArrowUp':
      return -1;
    case 'PageDown':
      return pageRows;
    case 'PageUp':
      return -pageRows;
    case 'Home':
      return -rows;
    case 'End':
      return rows;
    default:
      return undefined;
  }
}

/** Where the menu opens that no pointer asked for. */
export function besideCurrent({ currentTarget }: KeyboardEvent): { x: number; y: number } {
  const box = (currentTarget as Element).querySelector('tr.current')?.getBoundingClientRect();
  return { x: (box?.left ?? 0) + 300, y: box?.bottom ?? 0 };
}
