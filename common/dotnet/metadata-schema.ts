/** Columns of the tables of .NET's metadata, and how wide they are: see metadata.ts. */

export interface TableSizes {
  /** Bit 0: offsets of strings have 4 bytes; 1: of GUIDs; 2: of blobs. */
  heapSizes: number;
  /** Of each table, which indices into it are as wide as it takes. */
  rows: readonly number[];
}

/** Tables that an index may lead into, and how many of its low bits say which. */
const CODED: Readonly<Record<string, { bits: number; tables: readonly number[] }>> = {
  typeDefOrRef: { bits: 2, tables: [0x02, 0x01, 0x1b] },
  hasConstant: { bits: 2, tables: [0x04, 0x08, 0x17] },
  hasCustomAttribute: {
    bits: 5,
    tables: [
      0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20, 0x23, 0x26,
      0x27, 0x28, 0x2a, 0x2c, 0x2b,
    ],
  },
  hasFieldMarshal: { bits: 1, tables: [0x04, 0x08] },
  hasDeclSecurity: { bits: 2, tables: [0x02, 0x06, 0x20] },
  memberRefParent: { bits: 3, tables: [0x02, 0x01, 0x1a, 0x06, 0x1b] },
  hasSemantics: { bits: 1, tables: [0x14, 0x17] },
  methodDefOrRef: { bits: 1, tables: [0x06, 0x0a] },
  memberForwarded: { bits: 1, tables: [0x04, 0x06] },
  implementation: { bits: 2, tables: [0x26, 0x23, 0x27] },
  customAttributeType: { bits: 3, tables: [0x06, 0x0a] },
  resolutionScope: { bits: 2, tables: [0x00, 0x1a, 0x23, 0x01] },
  typeOrMethodDef: { bits: 1, tables: [0x02, 0x06] },
};

/** Of each column: 2 or 4 bytes; S, G, B: offset of a string, GUID or blob; a coded index; `@`: index into that table. */
const TABLES: Readonly<Record<number, string>> = {
  0: '2 S G G G',
  1: 'resolutionScope S S',
  2: '4 S S typeDefOrRef @4 @6',
  3: '@4',
  4: '2 S B',
  5: '@6',
  6: '4 2 2 S B @8',
  7: '@8',
  8: '2 2 S',
  9: '@2 typeDefOrRef',
  10: 'memberRefParent S B',
  11: '2 hasConstant B',
  12: 'hasCustomAttribute customAttributeType B',
  13: 'hasFieldMarshal B',
  14: '2 hasDeclSecurity B',
  15: '2 4 @2',
  16: '4 @4',
  17: 'B',
  18: '@2 @20',
  19: '@20',
  20: '2 S typeDefOrRef',
  21: '@2 @23',
  22: '@23',
  23: '2 S B',
  24: '2 @6 hasSemantics',
  25: '@2 methodDefOrRef methodDefOrRef',
  26: 'S',
  27: 'B',
  28: '2 memberForwarded S @26',
  29: '4 @4',
  30: '4 4',
  31: '4',
  32: '4 2 2 2 2 4 B S S',
  33: '4',
  34: '4 4 4',
  35: '2 2 2 2 4 B S S B',
  36: '4 @35',
  37: '4 4 4 @35',
  38: '4 S B',
  39: '4 4 S S implementation',
  40: '4 4 S implementation',
  41: '@2 @2',
  42: '2 2 typeOrMethodDef S',
  43: 'methodDefOrRef B',
  44: '@42 typeDefOrRef',
  48: 'B G B G',
  49: '@48 B',
  50: '@6 @53 @51 @52 4 4',
  51: '2 2 S',
  52: 'S B',
  53: '@53 B',
  54: '@6 @6',
};

/** Offsets of the columns, and how many bytes a row has; of an unknown table 0. */
export function rowLayout(table: number, sizes: TableSizes): { columns: number[]; rowBytes: number } {
  const columns: number[] = [];
  let rowBytes = 0;
  for (const column of TABLES[table]?.split(' ') ?? []) {
    columns.push(rowBytes);
    rowBytes += columnBytes(column, sizes);
  }
  return { columns, rowBytes };
}

function columnBytes(column: string, { heapSizes, rows }: TableSizes): number {
  if (column === '2' || column === '4') return Number(column);
  const heap = 'SGB'.indexOf(column);
  if (heap >= 0) return heapSizes & (1 << heap) ? 4 : 2;
  if (column.startsWith('@')) return (rows[Number(column.slice(1))] ?? 0) > 0xffff ? 4 : 2;
  const { bits, tables } = CODED[column]!;
  return Math.max(...tables.map((table) => rows[table] ?? 0)) >= 2 ** (16 - bits) ? 4 : 2;
}
